"""Validation of an issuer's responses before a user is signed in (OpenID Connect Core, code flow with PKCE).

Pure: takes texts, returns IdentityClaims or raises SignInRejected. Network requests are in client.py.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import urlencode

import jwt
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from jwt.exceptions import InvalidSubjectError

from portal.core.single_sign_on import SingleSignOn

# Asymmetric algorithms only: a token signed with a shared secret, or unsigned, could come from anyone.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
CLOCKS_DIFFER_S = 60
SIGN_IN_LASTS_S = 600
SUBJECT_MAX = 255
NAME_MAX = 80
GROUPS_MAX = 1000
REASONS: dict[type[jwt.PyJWTError], str] = {
    jwt.InvalidSignatureError: "signature",
    jwt.ExpiredSignatureError: "expired",
    jwt.ImmatureSignatureError: "not_yet_valid",
    jwt.InvalidAudienceError: "audience",
    jwt.InvalidIssuerError: "issuer",
    InvalidSubjectError: "subject",
    jwt.MissingRequiredClaimError: "claim_missing",
    jwt.InvalidKeyError: "key",
}


class SignInRejected(Exception):
    """Sign-in fails. `reason` and `facts` are for the log only; the user does not see them."""

    def __init__(self, reason: str, **facts: str | int) -> None:
        super().__init__(reason)
        self.reason, self.facts = reason, facts


@dataclass(frozen=True)
class IssuerEndpoints:
    """The issuer's endpoints from its discovery document. `by_basic`: it expects the client secret by HTTP Basic."""

    authorization: str
    token: str
    keys: str
    by_basic: bool


@dataclass(frozen=True)
class PendingSignIn:
    """A sign-in that has begun. It is stored in the browser's session until the browser returns, and is used once."""

    go_on: str
    state: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    begun_at: float = field(default_factory=time.time)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def is_over(self) -> bool:
        return time.time() > self.begun_at + SIGN_IN_LASTS_S

    def is_answered_by(self, state: str) -> bool:
        return hmac.compare_digest(self.state.encode(), state.encode())


@dataclass(frozen=True)
class IdentityClaims:
    """The identity of a user: `subject` at `issuer`. The email is verified and in lower case."""

    issuer: str
    subject: str
    email: str
    name: str
    groups: frozenset[str]


def issuer_endpoints(found: Mapping[str, Any], sso: SingleSignOn) -> IssuerEndpoints:
    """Reads the endpoints from the issuer's discovery document (`found`). Raises SignInRejected."""
    if found.get("issuer") != sso.issuer:
        raise SignInRejected("discovery_of_another_issuer")
    urls = [found.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")]
    if not all(isinstance(url, str) and sso.may_be_asked(url) for url in urls):
        raise SignInRejected("discovery_without_safe_addresses")
    methods = found.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    # If the issuer accepts both, POST: some issuers do not decode the encoding that OAuth requires within Basic.
    by_basic = not isinstance(methods, list) or "client_secret_post" not in methods
    return IssuerEndpoints(str(urls[0]), str(urls[1]), str(urls[2]), by_basic=by_basic)


def authorization_url(pending: PendingSignIn, at: IssuerEndpoints, sso: SingleSignOn, *, back: str) -> str:
    challenge = base64.urlsafe_b64encode(hashlib.sha256(pending.verifier.encode()).digest()).rstrip(b"=").decode()
    asked = {
        "response_type": "code",
        "client_id": sso.client_id,
        "redirect_uri": back,
        "scope": "openid profile email",
        "state": pending.state,
        "nonce": pending.nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    return f"{at.authorization}{'&' if '?' in at.authorization else '?'}{urlencode(asked)}"


def verified_claims(
    id_token: Any, keys: Mapping[str, Any], pending: PendingSignIn, sso: SingleSignOn
) -> IdentityClaims:
    """Raises SignInRejected."""
    if not isinstance(id_token, str):
        raise SignInRejected("no_id_token")
    try:
        header = jwt.get_unverified_header(id_token)
        if header.get("alg") not in ALGORITHMS:
            raise SignInRejected("algorithm", algorithm=ascii(header.get("alg"))[:20])
        claims = jwt.decode(
            id_token,
            _key(keys, header),
            algorithms=[header["alg"]],
            audience=sso.client_id,
            issuer=sso.issuer,
            leeway=CLOCKS_DIFFER_S,
            options={"require": ["iss", "sub", "aud", "exp", "iat"], "enforce_minimum_key_length": True},
        )
    except jwt.PyJWTError as error:
        raise SignInRejected(REASONS.get(type(error), "malformed"), error=type(error).__name__) from error
    _meant_for_us_and_now(claims, pending, sso)
    return _claims(claims, sso)


def _key(keys: Mapping[str, Any], header: Mapping[str, Any]) -> jwt.PyJWK:
    """The signing key that the token names. If it names none, the issuer must have exactly one."""
    listed = keys.get("keys")
    known = [key for key in listed if isinstance(key, dict)] if isinstance(listed, list) else []
    kid = header.get("kid")
    found = [key for key in known if key.get("use", "sig") == "sig" and (kid is None or key.get("kid") == kid)]
    if len(found) != 1:
        raise SignInRejected("unknown_key", keys_found=len(found))
    if found[0].get("alg", header["alg"]) != header["alg"]:
        raise SignInRejected("algorithm_of_another_key")
    try:
        return jwt.PyJWK(found[0], algorithm=header["alg"])
    except (ValueError, TypeError, KeyError) as error:
        raise SignInRejected("key", error=type(error).__name__) from error


def _meant_for_us_and_now(claims: Mapping[str, Any], pending: PendingSignIn, sso: SingleSignOn) -> None:
    """`aud` may name other clients, too; then `azp` must name this one."""
    party = claims.get("azp", None if isinstance(claims["aud"], list) and len(claims["aud"]) > 1 else sso.client_id)
    if party != sso.client_id:
        raise SignInRejected("authorized_party")
    nonce = claims.get("nonce")
    if not isinstance(nonce, str) or nonce != pending.nonce:
        raise SignInRejected("nonce")
    if int(claims["iat"]) < pending.begun_at - CLOCKS_DIFFER_S:
        raise SignInRejected("older_than_the_sign_in")


def _claims(claims: Mapping[str, Any], sso: SingleSignOn) -> IdentityClaims:
    subject, email = claims["sub"], claims.get("email")
    if not (subject.isascii() and subject.isprintable() and 0 < len(subject) <= SUBJECT_MAX):
        raise SignInRejected("subject")
    if claims.get("email_verified") is not True:  # "true" and 1 do not count as verified, either
        raise SignInRejected("address_not_verified")
    email = email.strip().lower() if isinstance(email, str) else ""
    try:
        validate_email(email)
    except ValidationError as error:
        raise SignInRejected("address") from error
    if len(email) > 254 or not email.isprintable():
        raise SignInRejected("address")
    return IdentityClaims(sso.issuer, subject, email, _name(claims, email), _groups(claims, sso))


def _name(claims: Mapping[str, Any], email: str) -> str:
    said = claims.get("name") or claims.get("preferred_username")
    text = " ".join("".join(char if char.isprintable() else " " for char in str(said or "")).split())
    return text[:NAME_MAX].strip() or email.partition("@")[0][:NAME_MAX]


def _groups(claims: Mapping[str, Any], sso: SingleSignOn) -> frozenset[str]:
    """A missing claim means that the user is in no group. Groups stored elsewhere ("too many to list") are rejected."""
    if not sso.groups:
        return frozenset()
    elsewhere = claims.get("_claim_names")
    if isinstance(elsewhere, dict) and sso.groups_claim in elsewhere:
        raise SignInRejected("groups_not_in_the_token")
    said = claims.get(sso.groups_claim, [])
    said = [said] if isinstance(said, str) else said
    if not isinstance(said, list) or len(said) > GROUPS_MAX or not all(isinstance(group, str) for group in said):
        raise SignInRejected("groups")
    return frozenset(said)
