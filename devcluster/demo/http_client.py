"""A browser session without a screen, and an API client, for `demo --check` and benchmarks.

Names below localhost need not be resolvable: every connection goes to 127.0.0.1, with the name in the Host header.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

REDIRECTS = {301, 302, 303, 307, 308}
TIMEOUT_S = 60.0


@dataclass
class Form:
    """A form of a page, with the values that a browser would send if the user changed nothing."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    url: str
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")

    def json(self) -> Any:
        return json.loads(self.body)

    def forms(self) -> list[Form]:
        parser = _Forms()
        parser.feed(self.text)
        return parser.found

    def form(self, *, having: str = "", action: str = "") -> Form:
        """Returns the first form that has a field named `having` and an address that ends with `action`, if these are
        given.
        """
        for form in self.forms():
            if (not having or having in form.fields) and (not action or urlsplit(form.action).path.endswith(action)):
                return form
        raise AssertionError(f"{self.url} ({self.status}) has no form with {having or action!r}: {self.words()[:300]}")

    def words(self) -> str:
        """Returns the visible text of the page."""
        parser = _Words()
        parser.feed(self.text)
        return " ".join(" ".join(parser.found).split())


class BrowserSession:
    """One browser: keeps cookies per host, follows redirects to other hosts, and sends forms with their hidden fields.
    With `token` it is an API client, and sends the token instead of cookies. `trust`: the certificate authorities of an
    https address.
    """

    def __init__(self, base: str, *, token: str = "", trust: ssl.SSLContext | None = None) -> None:
        self.base = base
        self.token = token
        self.trust = trust
        self.cookies: dict[str, dict[str, str]] = {}
        self._connections: dict[str, http.client.HTTPConnection] = {}

    def get(self, path: str, *, timeout_s: float = TIMEOUT_S) -> Page:
        return self._follow("GET", urljoin(self.base, path), timeout_s=timeout_s)

    def submit(self, page: Page, form: Form, **typed: str) -> Page:
        url = urljoin(page.url, form.action or page.url)
        fields = urlencode({**form.fields, **typed})
        if form.method == "get":
            return self._follow("GET", f"{url}?{fields}")
        return self._follow("POST", url, fields.encode(), "application/x-www-form-urlencoded", referer=page.url)

    def listen(self, path: str) -> EventStream:
        """Opens an event stream and reads it in the background, as the page's script does."""
        host = urlsplit(self.base).netloc
        connection = self._connect(host)
        headers = {"Host": host, "Accept": "text/event-stream", "Cookie": self.cookie_header(host)}
        connection.request("GET", path, headers=headers)
        return EventStream(connection, connection.getresponse())

    def api(self, method: str, path: str, body: Any = None, *, timeout_s: float = TIMEOUT_S) -> Page:
        data = None if body is None else json.dumps(body).encode()
        return self.request(method, urljoin(self.base, path), data, "application/json", timeout_s=timeout_s)

    def request(
        self,
        method: str,
        url: str,
        body: bytes | None = None,
        content_type: str = "",
        *,
        referer: str = "",
        timeout_s: float = TIMEOUT_S,
    ) -> Page:
        """Sends one request on a kept-alive connection. Does not follow redirects."""
        parts = urlsplit(url)
        headers = {"Host": parts.netloc, "Accept": "application/json" if self.token else "text/html,*/*;q=0.8"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        elif cookies := self.cookie_header(parts.netloc):
            headers["Cookie"] = cookies
        if body is not None:
            headers |= {"Content-Type": content_type, "Origin": f"{parts.scheme}://{parts.netloc}"}
        if referer:
            headers["Referer"] = referer
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        response, data = self._send(method, parts.netloc, path, body, headers, timeout_s)
        self._keep_cookies(parts.netloc, response)
        return Page(url, response.status, {key.lower(): value for key, value in response.getheaders()}, data)

    def cookie_header(self, host: str) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.get(host, {}).items())

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def _follow(self, method: str, url: str, *request: Any, **options: Any) -> Page:
        for _ in range(10):
            page = self.request(method, url, *request, **options)
            if page.status not in REDIRECTS:
                return page
            url = urljoin(url, page.headers["location"])
            if page.status not in (307, 308):
                method, request = "GET", ()
            options.pop("referer", None)
        raise AssertionError(f"{url} redirects for ever")

    def _send(
        self, method: str, host: str, path: str, body: bytes | None, headers: dict[str, str], timeout_s: float
    ) -> tuple[http.client.HTTPResponse, bytes]:
        for attempt in (1, 2):
            connection = self._connections.get(host)
            if connection is None:
                connection = self._connections[host] = self._connect(host)
            if connection.sock is not None:
                connection.sock.settimeout(timeout_s)
            try:
                connection.request(method, path, body, headers)
                response = connection.getresponse()
                return response, response.read()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                # The server closed the kept-alive connection before it received this request, so it is sent once more.
                self._connections.pop(host).close()
                if attempt == 2:
                    raise
        raise AssertionError("unreachable")

    def _connect(self, host: str) -> http.client.HTTPConnection:
        connection = _Connection(host, self.trust)
        connection.connect()
        return connection

    def _keep_cookies(self, host: str, response: http.client.HTTPResponse) -> None:
        jar = self.cookies.setdefault(host, {})
        for header in response.headers.get_all("Set-Cookie") or []:
            for name, morsel in SimpleCookie(header).items():
                if morsel["max-age"] == "0" or not morsel.value:
                    jar.pop(name, None)
                else:
                    jar[name] = morsel.value


class EventStream:
    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        assert response.status == 200, f"the stream answered {response.status}"
        self._connection = connection
        self._socket = connection.sock
        self._heard: list[bytes] = []
        self._thread = threading.Thread(target=self._read, args=(response,), daemon=True)
        self._thread.start()

    @property
    def text(self) -> str:
        return b"".join(self._heard).decode(errors="replace")

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(timeout=5)
        self._connection.close()

    def _read(self, response: http.client.HTTPResponse) -> None:
        with suppress(OSError, http.client.HTTPException):
            while data := response.read1(65536):
                self._heard.append(data)


class _Connection(http.client.HTTPConnection):
    def __init__(self, host: str, trust: ssl.SSLContext | None) -> None:
        super().__init__(host, timeout=TIMEOUT_S)
        self._to, self._trust = host, trust

    def connect(self) -> None:
        self.sock = connect(self._to, trust=self._trust)


def connect(host: str, *, trust: ssl.SSLContext | None = None, timeout_s: float = TIMEOUT_S) -> socket.socket:
    """Connects to this machine, over TLS with `trust`. `host`: name and port."""
    parts = urlsplit(f"//{host}")
    opened = socket.create_connection(("127.0.0.1", parts.port or (443 if trust else 80)), timeout=timeout_s)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return trust.wrap_socket(opened, server_hostname=parts.hostname) if trust else opened


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Form] = []
        self._form: Form | None = None
        self._select = ""
        self._textarea = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._form = Form(given.get("action", ""), given.get("method", "get").lower())
            self.found.append(self._form)
        elif self._form is not None:
            self._field(tag, given, self._form.fields)

    def _field(self, tag: str, given: dict[str, str], fields: dict[str, str]) -> None:
        name = given.get("name", "")
        if tag == "input" and name:
            kind = given.get("type", "text")
            if kind in ("checkbox", "radio") and "checked" not in given:
                if kind == "radio":
                    fields.setdefault(name, "")
            elif kind not in ("submit", "button"):
                fields[name] = given.get("value", "")
        elif tag == "select":
            self._select = name
        elif tag == "option" and self._select and ("selected" in given or self._select not in fields):
            fields[self._select] = given.get("value", "")
        elif tag == "textarea" and name:
            self._textarea = name
            fields[name] = ""

    def handle_data(self, data: str) -> None:
        if self._textarea and self._form is not None:
            self._form.fields[self._textarea] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        elif tag == "select":
            self._select = ""
        elif tag == "textarea":
            self._textarea = ""


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in ("script", "style", "head")

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in ("script", "style", "head")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.found.append(data)
