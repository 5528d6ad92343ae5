"""The three short requests from web to the issuer, to the addresses of its discovery document. Nothing is cached."""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import quote

import requests
from urllib3.exceptions import HTTPError

from accounts.sign_in.oidc.protocol import IssuerEndpoints, SignInRejected, issuer_endpoints
from portal.core.single_sign_on import SingleSignOn

DISCOVERY = "/.well-known/openid-configuration"
SILENCE_S = 3.0  # to connect, and between two chunks of a response
WHOLE_S = 6.0
SIZE_MAX = 256 * 1024
PIECE = 16 * 1024


def discover_endpoints(sso: SingleSignOn) -> IssuerEndpoints:
    """Raises SignInRejected."""
    return issuer_endpoints(_asked("GET", sso.issuer.rstrip("/") + DISCOVERY, sso), sso)


def fetch_keys(at: IssuerEndpoints, sso: SingleSignOn) -> dict[str, Any]:
    """Fetched each time, so that a key that the issuer revoked is invalid at once. Raises SignInRejected."""
    return _asked("GET", at.keys, sso)


def fetch_id_token(code: str, at: IssuerEndpoints, sso: SingleSignOn, *, verifier: str, back: str) -> Any:
    """Returns the ID token. The other tokens are neither read nor stored. Raises SignInRejected."""
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": back, "code_verifier": verifier}
    auth = None
    if at.by_basic:
        auth = (quote(sso.client_id, safe=""), quote(sso.client_secret, safe=""))
    else:
        form |= {"client_id": sso.client_id, "client_secret": sso.client_secret}
    return _asked("POST", at.token, sso, data=form, auth=auth).get("id_token")


def _asked(
    method: str,
    url: str,
    sso: SingleSignOn,
    *,
    data: dict[str, str] | None = None,
    auth: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """Follows no redirect: only the addresses of the discovery document are requested."""
    if not sso.may_be_asked(url):
        raise SignInRejected("address_not_safe")
    until = time.monotonic() + WHOLE_S
    try:
        with requests.request(
            method,
            url,
            data=data,
            auth=auth or _as_nobody,
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
            timeout=SILENCE_S,
            allow_redirects=False,
            stream=True,
        ) as answer:
            if answer.status_code != 200:
                raise SignInRejected("issuer_said_no", status=answer.status_code)
            found = json.loads(_body(answer, until))
    except (requests.RequestException, HTTPError, OSError) as error:
        raise SignInRejected("issuer_unreachable", error=type(error).__name__) from error
    except (ValueError, RecursionError) as error:
        raise SignInRejected("answer_is_no_json") from error
    if not isinstance(found, dict):
        raise SignInRejected("answer_is_no_json")
    return found


def _body(answer: requests.Response, until: float) -> bytes:
    """Reads the body in chunks, so that an endless response, or one of a byte per second, is aborted."""
    body = b""
    while piece := answer.raw.read1(PIECE, decode_content=False):
        body += piece
        if len(body) > SIZE_MAX:
            raise SignInRejected("answer_too_long")
        if time.monotonic() > until:
            raise SignInRejected("answer_too_slow")
    return body


def _as_nobody(asked: requests.PreparedRequest) -> requests.PreparedRequest:
    """Sends no credentials: without this, requests looks for a password of the host in ~/.netrc."""
    return asked
