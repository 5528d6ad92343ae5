"""Refused sign-ins: no session begins, no row changes, and the reason is in the log but not on the page."""

from __future__ import annotations

import base64
import json
import logging
import re
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from allauth.account.models import EmailAddress
from cryptography.hazmat.primitives.asymmetric import ec
from django.apps import apps
from django.contrib.sessions.models import Session
from django.test import Client

from accounts.models import Event, Identity, User
from accounts.sign_in.oidc import client as oidc_client
from tests.accounts.sign_in.visitor import Visitor
from tests.support.http.visits import rows_of
from tests.support.identity.issuer import CLIENT, Issuer, jwk, key, public_pem

pytestmark = pytest.mark.django_db
ROWS = [model for model in apps.get_models() if model._meta.managed and model is not Session]
SENTENCE = "Single sign-on failed."


def reasons(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    return [str(line["reason"]) for line in lines if line["event"] == "oidc_refused"]


def refused(
    visitor: Visitor, caplog: pytest.LogCaptureFixture, reason: str, *, ask: Callable[[], Any] | None = None
) -> None:
    """Asserts that the sign-in is refused for this reason. `ask`: a call to make instead of the whole sign-in."""
    caplog.clear()
    before = rows_of(*ROWS)
    answer = ask() if ask else visitor.sign_in()
    assert rows_of(*ROWS) == before
    assert answer.status_code == 403
    assert reasons(caplog) == [reason]
    assert not visitor.is_in
    told = answer.text
    # The page is the same for every reason.
    assert SENTENCE in told
    assert bare(told) == bare(Client().get("/login/oidc/back").text)
    token = visitor.issuer.last_token
    assert not token or token not in caplog.text
    assert "an-access-token" not in caplog.text


def bare(page: str) -> str:
    """Returns the page without the tokens that differ in every response."""
    return re.sub(r"[A-Za-z0-9]{64}", "", page)


def test_the_honest_one_is_believed(visitor: Visitor) -> None:
    """The valid sign-in; every other test of this file changes one thing of it."""
    answer = visitor.sign_in()
    assert (answer.status_code, answer["Location"]) == (302, "/tokens")
    assert visitor.is_in
    assert [path for path, _, _ in visitor.issuer.asked][-3:] == [
        "/.well-known/openid-configuration",
        "/token",
        "/keys",
    ]


# ---- claims of the token -----------------------------------------------------------------------------------------

NOW = time.time()
SAID: list[tuple[str, dict[str, Any], str]] = [
    ("another audience", {"aud": "another-client"}, "audience"),
    ("no audience", {"aud": None}, "claim_missing"),
    ("an audience of objects", {"aud": [{"a": 1}]}, "audience"),
    ("for several, made for another", {"aud": [CLIENT, "another"], "azp": "another"}, "authorized_party"),
    ("for several, made for nobody", {"aud": [CLIENT, "another"]}, "authorized_party"),
    ("made for another", {"azp": "another"}, "authorized_party"),
    ("another issuer", {"iss": "https://elsewhere.example.org"}, "issuer"),
    ("nearly our issuer", {"iss": "http://127.0.0.1/"}, "issuer"),
    ("no issuer", {"iss": None}, "claim_missing"),
    ("no end", {"exp": None}, "claim_missing"),
    ("an end that has passed", {"exp": NOW - 3600}, "expired"),
    ("an end that is no number", {"exp": "tomorrow"}, "malformed"),
    ("an endless end", {"exp": float("inf")}, "malformed"),
    ("no beginning", {"iat": None}, "claim_missing"),
    ("made tomorrow", {"iat": NOW + 86400, "exp": NOW + 90000}, "not_yet_valid"),
    ("made yesterday", {"iat": NOW - 86400, "exp": NOW + 86400}, "older_than_the_sign_in"),
    ("no nonce", {"nonce": None}, "nonce"),
    ("another nonce", {"nonce": "another"}, "nonce"),
    ("a nonce that is no text", {"nonce": ["x"]}, "nonce"),
    ("half a character for a nonce", {"nonce": "\ud800"}, "nonce"),
    ("no subject", {"sub": None}, "claim_missing"),
    ("an empty subject", {"sub": ""}, "subject"),
    ("a subject that is a number", {"sub": 7}, "subject"),
    ("a subject with a zero byte", {"sub": "a\0b"}, "subject"),
    ("a subject without end", {"sub": "x" * 256}, "subject"),
    ("an address that is not verified", {"email_verified": False}, "address_not_verified"),
    ("the text true", {"email_verified": "true"}, "address_not_verified"),
    ("the text false", {"email_verified": "false"}, "address_not_verified"),
    ("the number one", {"email_verified": 1}, "address_not_verified"),
    ("silence about the address", {"email_verified": None}, "address_not_verified"),
    ("no address", {"email": None}, "address"),
    ("an address that is none", {"email": "alice"}, "address"),
    ("an address that is a list", {"email": ["alice@example.org"]}, "address"),
    ("an address with a line", {"email": "alice@example.org\nbcc: x@example.org"}, "address"),
]


@pytest.mark.parametrize(("claims", "reason"), [row[1:] for row in SAID], ids=[row[0] for row in SAID])
def test_what_a_token_must_not_say(
    visitor: Visitor, caplog: pytest.LogCaptureFixture, claims: dict[str, Any], reason: str
) -> None:
    visitor.issuer.claims |= claims
    refused(visitor, caplog, reason)


# ---- signature and keys ------------------------------------------------------------------------------------------


def encoded(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def unsigned(claims: dict[str, Any], header: dict[str, Any], *, algorithm: str) -> str:
    return f"{encoded({**header, 'alg': algorithm})}.{encoded(claims)}."


def by_public_key_as_secret(claims: dict[str, Any], header: dict[str, Any]) -> str:
    """A forgery that passes a check which lets the token choose its algorithm: the public key is the HMAC secret."""
    start = f"{encoded({**header, 'alg': 'HS256'})}.{encoded(claims)}"
    hmac = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    # PyJWT's guard against PEM keys as HMAC secrets protects careless callers; a forger bypasses it, as here.
    signature = hmac.sign(start.encode(), public_pem(key()))
    return f"{start}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def altered(claims: dict[str, Any], header: dict[str, Any]) -> str:
    start, _, signature = jwt.encode(claims, key(), algorithm="RS256", headers=header).split(".")
    return f"{start}.{encoded({**claims, 'sub': 'somebody-else'})}.{signature}"


Signed = Callable[[dict[str, Any], dict[str, Any]], str]
SIGNED: list[tuple[str, Signed, str]] = [
    ("none", lambda claims, header: unsigned(claims, header, algorithm="none"), "algorithm"),
    ("None", lambda claims, header: unsigned(claims, header, algorithm="None"), "algorithm"),
    ("RS256 without a signature", lambda claims, header: unsigned(claims, header, algorithm="RS256"), "signature"),
    ("the public key as a secret", by_public_key_as_secret, "algorithm"),
    (
        "the client's secret",
        lambda claims, header: jwt.encode(claims, "a secret of the client, for tests", "HS256", headers=header),
        "algorithm",
    ),
    (
        "another key of the same name",
        lambda claims, header: jwt.encode(claims, key("theirs"), "RS256", headers=header),
        "signature",
    ),
    ("altered", altered, "signature"),
    ("another kind of key", lambda claims, header: jwt.encode(claims, ec_key(), "ES256", headers=header), "key"),
    ("no token", lambda _claims, _header: "no-such-token", "malformed"),
    ("empty", lambda _claims, _header: "", "malformed"),
]


def ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@pytest.mark.parametrize(("signed", "reason"), [row[1:] for row in SIGNED], ids=[row[0] for row in SIGNED])
def test_whose_signature_does_not_count(
    visitor: Visitor, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, signed: Signed, reason: str
) -> None:
    monkeypatch.setattr(visitor.issuer, "signed", signed)
    refused(visitor, caplog, reason)


KEYS: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("a key that is not listed", [jwk(key())], {"kid": "two"}, "unknown_key"),
    ("no key at all", [], {}, "unknown_key"),
    ("two of one name", [jwk(key()), jwk(key("theirs"))], {}, "unknown_key"),
    ("two, and none named", [jwk(key()), jwk(key("theirs"), kid="two")], {"kid": None}, "unknown_key"),
    ("a key for encrypting", [jwk(key(), use="enc")], {}, "unknown_key"),
    ("a key of another algorithm", [jwk(key(), alg="PS256")], {}, "algorithm_of_another_key"),
    ("a key without its number", [jwk(key(), n=None)], {}, "key"),
    ("a key that is text", ["one"], {}, "unknown_key"),
]


@pytest.mark.parametrize(("keys", "header", "reason"), [row[1:] for row in KEYS], ids=[row[0] for row in KEYS])
def test_which_keys_do_not_count(
    visitor: Visitor, caplog: pytest.LogCaptureFixture, keys: list[Any], header: dict[str, Any], reason: str
) -> None:
    visitor.issuer.keys, visitor.issuer.header = keys, visitor.issuer.header | header
    refused(visitor, caplog, reason)


def test_one_key_needs_no_name(visitor: Visitor) -> None:
    visitor.issuer.keys, visitor.issuer.header = [jwk(key(), kid=None)], {"kid": None}
    assert visitor.sign_in()["Location"] == "/tokens"


# ---- state, nonce and repeated use -------------------------------------------------------------------------------


def test_a_token_of_before_is_good_for_nothing(
    visitor: Visitor, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its nonce belongs to another sign-in: a token found in a log cannot be used to sign in."""
    assert visitor.sign_in().status_code == 302
    stolen = visitor.issuer.last_token
    monkeypatch.setattr(visitor.issuer, "signed", lambda _claims, _header: stolen)
    refused(Visitor(visitor.issuer), caplog, "nonce")


def test_what_was_brought_back_once_is_over(visitor: Visitor, caplog: pytest.LogCaptureFixture) -> None:
    """The state is used up even when the sign-in failed: a second attempt could come from another person."""
    code, state = visitor.issuer.authorized(visitor.leave())
    visitor.issuer.claims["email_verified"] = False
    assert visitor.client.get("/login/oidc/back", {"code": code, "state": state}).status_code == 403
    visitor.issuer.claims["email_verified"] = True
    visitor.issuer.pending["again"] = {}
    refused(
        visitor, caplog, "state", ask=lambda: visitor.client.get("/login/oidc/back", {"code": "again", "state": state})
    )


@pytest.mark.parametrize("state", ["", "another", "é", "\ud800"])
def test_only_the_browser_that_began_it_comes_back(
    visitor: Visitor, caplog: pytest.LogCaptureFixture, state: str
) -> None:
    """Otherwise a link could sign a user in to another person's account, who then reads what the user does here."""
    code, _state = visitor.issuer.authorized(visitor.leave())
    calls = len(visitor.issuer.asked)
    query = {"code": code, "state": state.encode("utf-8", "surrogatepass")}
    refused(visitor, caplog, "state", ask=lambda: visitor.client.get("/login/oidc/back", query))
    assert len(visitor.issuer.asked) == calls, "and the issuer is not asked"


def test_a_link_to_the_way_back_does_nothing(visitor: Visitor, caplog: pytest.LogCaptureFixture) -> None:
    code, state = visitor.issuer.authorized(visitor.leave())
    other = Visitor(visitor.issuer)
    refused(other, caplog, "state", ask=lambda: other.client.get("/login/oidc/back", {"code": code, "state": state}))
    assert "session" not in other.client.cookies
    # A wrong state in the user's own browser does not end the sign-in that the user began.
    assert visitor.client.get("/login/oidc/back", {"code": code, "state": "x"}).status_code == 403
    assert visitor.client.get("/login/oidc/back", {"code": code, "state": state})["Location"] == "/tokens"


def test_it_cannot_wait_for_long(visitor: Visitor, caplog: pytest.LogCaptureFixture) -> None:
    code, state = visitor.issuer.authorized(visitor.leave())
    session = visitor.client.session
    session["oidc"] = {**session["oidc"], "begun_at": time.time() - 700}
    session.save()
    back = {"code": code, "state": state}
    refused(visitor, caplog, "sign_in_too_old", ask=lambda: visitor.client.get("/login/oidc/back", back))


BROUGHT = [
    ({"code": ""}, "no_code"),
    ({"code": "x" * 5000}, "no_code"),
    ({"code": "made-up"}, "issuer_said_no"),
    ({"error": "access_denied"}, "issuer_refused"),
    ({"error": "<script>alert(1)</script>"}, "issuer_refused"),
    ({"iss": "https://elsewhere.example.org"}, "answer_of_another_issuer"),
]


@pytest.mark.parametrize(("changed", "reason"), BROUGHT)
def test_what_a_browser_must_not_bring(
    visitor: Visitor, caplog: pytest.LogCaptureFixture, changed: dict[str, str], reason: str
) -> None:
    refused(visitor, caplog, reason, ask=lambda: visitor.sign_in(**changed))


# ---- choice of the account ---------------------------------------------------------------------------------------


def test_an_address_leads_to_nobodys_account(visitor: Visitor, caplog: pytest.LogCaptureFixture, alice: User) -> None:
    """A person who runs the issuer, or gets an address there, gets no access to accounts that existed before."""
    refused(visitor, caplog, "address_of_another_account")
    assert not alice.identities.exists()


def test_nor_in_other_letters_or_as_a_second_address(
    visitor: Visitor, caplog: pytest.LogCaptureFixture, alice: User
) -> None:
    EmailAddress.objects.create(user=alice, email="Second@Example.org", verified=False)
    visitor.issuer.claims["email"] = "SECOND@example.org"
    refused(visitor, caplog, "address_of_another_account")


def test_another_subject_with_a_known_address(visitor: Visitor, caplog: pytest.LogCaptureFixture) -> None:
    """The former user left, and the address was given to another person."""
    assert visitor.sign_in().status_code == 302
    visitor.issuer.subject = "subject-2"
    refused(Visitor(visitor.issuer), caplog, "subject_changed")


def test_the_same_subject_of_another_issuer_is_somebody_else(
    visitor: Visitor, caplog: pytest.LogCaptureFixture
) -> None:
    assert visitor.sign_in().status_code == 302
    Identity.objects.update(issuer="https://before.example.org")
    refused(Visitor(visitor.issuer), caplog, "address_of_another_account")


def test_suspended(visitor: Visitor, caplog: pytest.LogCaptureFixture) -> None:
    assert visitor.sign_in().status_code == 302
    User.objects.update(is_active=False)
    refused(Visitor(visitor.issuer), caplog, "account_suspended")


def test_the_break_glass_account_is_not_the_issuers(visitor: Visitor, caplog: pytest.LogCaptureFixture) -> None:
    assert visitor.sign_in().status_code == 302
    User.objects.update(is_superuser=True)
    refused(Visitor(visitor.issuer), caplog, "break_glass_account")


# ---- invalid responses of the issuer -----------------------------------------------------------------------------

DISCOVERY = "/.well-known/openid-configuration"
LONG = [b'{"issuer": "', b"x" * 300_000, b'"}']
ANSWERS: list[tuple[str, tuple[int, dict[str, str], list[bytes]], str]] = [
    ("redirect", (302, {"Location": "http://127.0.0.1:1/elsewhere"}, []), "issuer_said_no"),
    ("away", (503, {}, []), "issuer_said_no"),
    ("too long", (200, {}, LONG), "answer_too_long"),
    ("no JSON", (200, {}, [b"<html>"]), "answer_is_no_json"),
    ("no UTF-8", (200, {}, [b'{"a": "\xff\xfe"}']), "answer_is_no_json"),
    ("a list", (200, {}, [b"[]"]), "answer_is_no_json"),
    ("deep", (200, {}, [b"[" * 100_000]), "answer_is_no_json"),
    ("cut", (200, {"Content-Length": "500"}, [b"{"]), "issuer_unreachable"),
    ("packed", (200, {"Content-Encoding": "gzip"}, [b"\x1f\x8b"]), "answer_is_no_json"),
]


@pytest.mark.parametrize("path", ["/token", "/keys", DISCOVERY])
@pytest.mark.parametrize(("answer", "reason"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS])
def test_an_answer_that_is_none(
    visitor: Visitor,
    caplog: pytest.LogCaptureFixture,
    path: str,
    answer: tuple[int, dict[str, str], list[bytes]],
    reason: str,
) -> None:
    code, state = visitor.issuer.authorized(visitor.leave())
    visitor.issuer.answers[path] = answer
    refused(visitor, caplog, reason, ask=lambda: visitor.client.get("/login/oidc/back", {"code": code, "state": state}))


SLOW = [("silent", [b"{}"], 5.0, "issuer_unreachable"), ("in drops", [b" "] * 100, 0.05, "answer_too_slow")]


@pytest.mark.parametrize(("pieces", "delay_s", "reason"), [row[1:] for row in SLOW], ids=[row[0] for row in SLOW])
def test_an_answer_that_takes_too_long(
    visitor: Visitor,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    pieces: list[bytes],
    delay_s: float,
    reason: str,
) -> None:
    monkeypatch.setattr(oidc_client, "SILENCE_S", 0.3)
    monkeypatch.setattr(oidc_client, "WHOLE_S", 0.5)
    visitor.issuer.answers[DISCOVERY], visitor.issuer.delay_s = (200, {}, pieces), delay_s
    begun = time.monotonic()
    refused(visitor, caplog, reason, ask=lambda: visitor.client.post("/login/oidc"))
    assert time.monotonic() - begun < 3


DESCRIBED: list[tuple[str, dict[str, Any], str]] = [
    ("another issuer", {"issuer": "https://elsewhere.example.org"}, "discovery_of_another_issuer"),
    ("no issuer", {"issuer": None}, "discovery_of_another_issuer"),
    ("no keys", {"jwks_uri": None}, "discovery_without_safe_addresses"),
    ("keys in clear", {"jwks_uri": "http://issuer.example.org/keys"}, "discovery_without_safe_addresses"),
    ("a file", {"token_endpoint": "file:///etc/passwd"}, "discovery_without_safe_addresses"),
    ("script", {"authorization_endpoint": "javascript:alert(1)"}, "discovery_without_safe_addresses"),
    ("a list", {"token_endpoint": ["https://a.example.org"]}, "discovery_without_safe_addresses"),
    ("a port that is none", {"token_endpoint": "https://a.example.org:x/"}, "discovery_without_safe_addresses"),
    ("with a password", {"token_endpoint": "https://a:b@c.example.org/"}, "discovery_without_safe_addresses"),
]


@pytest.mark.parametrize(("discovery", "reason"), [row[1:] for row in DESCRIBED], ids=[row[0] for row in DESCRIBED])
def test_an_issuer_that_describes_itself_otherwise(
    visitor: Visitor, caplog: pytest.LogCaptureFixture, discovery: dict[str, Any], reason: str
) -> None:
    visitor.issuer.discovery = discovery
    refused(visitor, caplog, reason, ask=lambda: visitor.client.post("/login/oidc"))
    assert not visitor.client.session.get("oidc")


def test_nobody_there(visitor: Visitor, caplog: pytest.LogCaptureFixture, settings: Any) -> None:
    settings.OIDC = visitor.issuer.sso(issuer="http://127.0.0.1:1")
    refused(visitor, caplog, "issuer_unreachable", ask=lambda: visitor.client.post("/login/oidc"))


# ---- sign-in page ------------------------------------------------------------------------------------------------


def test_it_begins_with_a_form_of_ours_only(issuer: Issuer) -> None:
    strict = Client(enforce_csrf_checks=True)
    assert strict.get("/login/oidc").status_code == 405
    assert strict.post("/login/oidc").status_code == 403
    assert Client().post("/login/oidc/back").status_code == 405
    assert Client().head("/login/oidc/back").status_code == 405
    assert issuer.asked == []


def test_without_an_issuer_there_is_no_such_way_in(client: Client, db: None) -> None:
    assert client.post("/login/oidc").status_code == 404
    assert client.get("/login/oidc/back?code=a&state=b").status_code == 404
    assert "/login/oidc" not in client.get("/login").text


def test_reading_the_way_back_writes_nothing(issuer: Issuer, caplog: pytest.LogCaptureFixture) -> None:
    """The callback is a GET because issuers redirect to it. If this browser began no sign-in, it changes nothing;
    otherwise it does what the sign-in form asked for.
    """
    before = rows_of(*ROWS, Session)
    caplog.set_level(logging.ERROR, logger="accounts.sign_in.oidc.views")
    for query in ("", "?code=a&state=b", "?error=x", "?state="):
        assert Client().get(f"/login/oidc/back{query}").status_code == 403
    assert rows_of(*ROWS, Session) == before
    assert not Event.objects.exists()
