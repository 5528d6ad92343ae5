"""An issuer over real HTTP whose behaviour a test sets. By default it behaves correctly."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from portal.core.single_sign_on import GroupMapping, SingleSignOn

CLIENT, SECRET = "portal", "a secret of the client, for tests"
KID = "one"


@functools.cache
def key(name: str = KID) -> rsa.RSAPrivateKey:
    """One key for all tests of a process: generating one is slow."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem(of: rsa.RSAPrivateKey) -> str:
    return of.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def public_pem(of: rsa.RSAPrivateKey) -> bytes:
    return of.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def jwk(of: rsa.RSAPrivateKey, **fields: Any) -> dict[str, Any]:
    found = {**json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(of.public_key())), "kid": KID, "use": "sig", **fields}
    return {name: value for name, value in found.items() if value is not None}


class Issuer:
    """`claims` and `header` override those of the token, `discovery` overrides the well-known document; None removes an
    entry. `signed` makes the token of claims and header. `answers`: path → (status, headers, body) in place of the
    normal answer; `delay_s`: the delay before each piece of the body. `asked`: the requests that it received.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.claims: dict[str, Any] = {"email": "alice@example.org", "email_verified": True, "name": "Alice"}
        self.header: dict[str, Any] = {"kid": KID}
        self.discovery: dict[str, Any] = {}
        self.keys: list[dict[str, Any]] = [jwk(key())]
        self.answers: dict[str, tuple[int, dict[str, str], list[bytes]]] = {}
        self.delay_s = 0.0
        self.subject = "subject-1"
        self.asked: list[tuple[str, dict[str, str], str]] = []
        self.pending: dict[str, dict[str, str]] = {}
        self.last_token = ""

    def sso(self, **changed: Any) -> SingleSignOn:
        groups: dict[str, GroupMapping] = changed.pop("groups", {})
        return SingleSignOn(
            **{
                "issuer": self.url,
                "client_id": CLIENT,
                "client_secret": SECRET,
                "name": "Example",
                "groups_claim": "groups",
                "groups": groups,
                "http_on_loopback": True,
            }
            | changed
        )

    def signed(self, claims: dict[str, Any], header: dict[str, Any]) -> str:
        return jwt.encode(claims, key(), algorithm="RS256", headers=header)

    def authorized(self, address: str) -> tuple[str, str]:
        """Returns the code and the state that the browser brings back from the authorization page."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        code = f"code-of-the-issuer-{len(self.pending)}"
        self.pending[code] = asked
        return code, asked["state"]

    # ---- requests from web

    def answer(self, path: str, headers: dict[str, str], body: str) -> tuple[int, dict[str, str], list[bytes]]:
        self.asked.append((path, headers, body))
        if path in self.answers:
            return self.answers[path]
        told: dict[str, Any] | None = None
        if path == "/.well-known/openid-configuration":
            told = {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
                **self.discovery,
            }
        elif path == "/keys":
            told = {"keys": self.keys}
        elif path == "/token":
            told = self._token(headers, {name: values[0] for name, values in parse_qs(body).items()})
        if told is None:
            return 400, {}, [b'{"error": "invalid_grant"}']
        return 200, {"Content-Type": "application/json"}, [json.dumps(told).encode()]

    def _token(self, headers: dict[str, str], form: dict[str, str]) -> dict[str, Any] | None:
        """As strict as a good issuer: each code works once, for the client with the secret and the matching PKCE
        challenge.
        """
        asked = self.pending.pop(form.get("code", ""), None)
        basic = base64.b64decode(headers.get("authorization", "").removeprefix("Basic ")).decode()
        in_form = [form.get("client_id", ""), form.get("client_secret", "")]
        given = [unquote(part) for part in basic.split(":")] if basic else in_form
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if asked is None or given != [CLIENT, SECRET] or challenge.decode().rstrip("=") != asked["code_challenge"]:
            return None
        if form.get("redirect_uri") != asked["redirect_uri"]:
            return None
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "sub": self.subject, "iat": now, "exp": now + 300}
        claims |= {"nonce": asked["nonce"], **self.claims}
        claims = {name: value for name, value in claims.items() if value is not None}
        self.last_token = self.signed(claims, {name: value for name, value in self.header.items() if value is not None})
        return {"id_token": self.last_token, "access_token": "an-access-token", "token_type": "Bearer"}


@contextmanager
def issuing() -> Iterator[Issuer]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"  # an answer may end when it ends

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            path = urlsplit(self.path).path
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, more, pieces = issuer.answer(path, headers, body)
            try:
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                self.end_headers()
                for piece in pieces:
                    ended.wait(issuer.delay_s)
                    self.wfile.write(piece)
                    self.wfile.flush()
            except OSError:
                pass  # the portal had heard enough

        do_POST = do_GET

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer, ended = Issuer(f"http://127.0.0.1:{server.server_port}"), threading.Event()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield issuer
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()
