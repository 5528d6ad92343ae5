"""The gateway's Caddyfile in the real Caddy, between a client and three small servers that say what reached them.

Doors is played under uvicorn, as in production: it would take a forwarded WebSocket upgrade for something else than a
request. It lets notebook `mine` in, on which two upstreams listen: the pod, and one that only an attacker names.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import uvicorn
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.deploy.conftest import DEADLINE_S, until

Json = dict[str, Any]
Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]
CADDYFILE = Path(__file__).parents[2] / "deploy" / "Caddyfile"
TOKEN = "token of-the-notebook"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def seen(self) -> Json:
        """What the server behind the gateway was asked."""
        return json.loads(self.text)


class Recorder:
    """An ASGI app that answers with its own name and the request it got; echoes WebSockets."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[Json] = []
        self.pod = ""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return
        asked = self._read(scope)
        self.asked.append(asked)
        if scope["type"] == "websocket":
            await self._echo(asked, receive, send)
        elif asked["path"] == "/gateway/authorize":
            await self._authorize(asked, send)
        else:
            await _respond(send, 200, {"content-type": "application/json"}, json.dumps(asked))

    def _read(self, scope: Message) -> Json:
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            headers[name.decode()] = "; ".join(filter(None, [headers.get(name.decode()), value.decode()]))
        query = scope["query_string"].decode()
        return {
            "server": self.name,
            "type": scope["type"],
            "method": scope.get("method", ""),
            "path": scope["path"],
            "query": query,
            "headers": headers,
        }

    async def _authorize(self, asked: Json, send: Send) -> None:
        notebook = asked["headers"]["x-forwarded-host"].split(".")[0]
        if notebook == "login":
            await _respond(send, 302, {"location": "http://portal.test/login", "set-cookie": "seen=1"}, "")
        elif notebook == "nameless":  # let in, but doors forgets to say where
            await _respond(send, 200, {}, "")
        elif notebook == "gone":
            free = _free_port()
            await _respond(send, 200, {"x-notebook-upstream": f"127.0.0.1:{free}"}, "")
        elif notebook == "mine":
            await _respond(send, 200, {"x-notebook-upstream": self.pod, "authorization": TOKEN}, "")
        else:
            await _respond(send, 404, {"content-type": "text/plain"}, "no such notebook")

    async def _echo(self, asked: Json, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": json.dumps(asked)})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": f"{self.name} heard {message['text']}"})


async def _respond(send: Send, status: int, headers: dict[str, str], text: str) -> None:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": text.encode()})


@dataclass
class Gateway:
    port: int
    web: Recorder
    doors: Recorder
    pod: Recorder
    evil: Recorder
    evil_address: str
    log: Path

    def ask(
        self, host: str, path: str = "/", *, method: str = "GET", headers: list[tuple[str, str]] | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        connection.putrequest(method, path, skip_host=True)
        for name, value in [("Host", host), *(headers or [])]:
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        answer = Answer(response.status, {n.lower(): v for n, v in response.getheaders()}, response.read().decode())
        connection.close()
        return answer

    def notebook(self, path: str = "/lab", *, name: str = "mine", **more: Any) -> Answer:
        return self.ask(f"{name}.notebooks.test:{self.port}", path, **more)

    def portal(self, path: str, **more: Any) -> Answer:
        return self.ask(f"portal.test:{self.port}", path, **more)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def _serving(app: Recorder) -> Iterator[str]:
    """host:port of a uvicorn in a thread."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
    thread.start()
    until(lambda: server.started, f"{app.name} up")
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(DEADLINE_S)
        listener.close()


@contextmanager
def _caddy(program: Path, environment: dict[str, str], log: Path) -> Iterator[None]:
    arguments = [program, "run", "--config", CADDYFILE, "--adapter", "caddyfile"]
    with log.open("wb") as stderr, subprocess.Popen(arguments, env=environment, stderr=stderr, stdout=stderr) as caddy:
        try:
            yield
        finally:
            caddy.terminate()
            caddy.wait(DEADLINE_S)


@pytest.fixture(scope="module")
def gateway(services: Json, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    web, doors, pod, evil = (Recorder(name) for name in ("web", "doors", "pod", "evil"))
    home = tmp_path_factory.mktemp("caddy")
    port, log = _free_port(), home / "log"
    with _serving(web) as web_at, _serving(doors) as doors_at, _serving(pod) as pod_at, _serving(evil) as evil_at:
        doors.pod = pod_at
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "GATEWAY_ADDRESS": f"http://:{port}",
            "WEB_UPSTREAM": web_at,
            "DOORS_UPSTREAM": doors_at,
            "PORTAL_HOST": "portal.test",
            "NOTEBOOKS_DOMAIN": f"notebooks.test:{port}",
        }
        with _caddy(Path(services["bin_dir"]) / "caddy", environment, log):
            gateway = Gateway(port, web, doors, pod, evil, evil_at, log)
            until(lambda: _lives(gateway), "gateway up")
            yield gateway


def _lives(gateway: Gateway) -> bool:
    try:
        return gateway.ask("localhost", "/livez").status == 200
    except OSError:
        return False


@pytest.mark.parametrize(
    ("method", "path", "server"),
    [
        ("GET", "/", "web"),
        ("GET", "/requests/7", "web"),
        ("POST", "/requests/7/approve", "web"),
        ("GET", "/live/namespaces/5", "doors"),
        ("GET", "/gateway/ticket", "doors"),
        ("GET", "/api/v1/workloads/7", "web"),
        ("GET", "/api/v1/workloads/7?wait=60&until=ready", "doors"),
        ("GET", "/api/v1/workloads/7?until=ready&wait=60", "doors"),
        ("PUT", "/api/v1/workloads/7?wait=60", "web"),
        ("GET", "/requests/7?wait=60", "web"),
        ("GET", "/livez-and-more", "web"),
    ],
)
def test_who_answers_on_the_portals_host(gateway: Gateway, method: str, path: str, server: str) -> None:
    seen = gateway.portal(path, method=method).seen

    assert (seen["server"], seen["method"]) == (server, method)
    assert seen["path"] + (f"?{seen['query']}" if seen["query"] else "") == path


def test_api_tokens_and_cookies_reach_the_portal(gateway: Gateway) -> None:
    seen = gateway.portal("/api/v1/", headers=[("Authorization", "Bearer gp_x"), ("Cookie", "session=s")]).seen

    assert seen["headers"]["authorization"] == "Bearer gp_x"
    assert seen["headers"]["cookie"] == "session=s"
    assert seen["headers"]["x-forwarded-host"] == f"portal.test:{gateway.port}"


def test_nobody_outside_asks_for_authorisation(gateway: Gateway) -> None:
    before = len(gateway.doors.asked)

    answer = gateway.portal("/gateway/authorize", headers=[("X-Forwarded-Host", "mine.notebooks.test")])

    assert answer.status == 404
    assert "authorization" not in answer.headers
    assert len(gateway.doors.asked) == before


@pytest.mark.parametrize("host", ["elsewhere.test", "notebooks.test", "portal.test.evil.test", "minenotebooks.test"])
def test_other_hosts_get_nothing(gateway: Gateway, host: str) -> None:
    assert gateway.ask(host).status == 404


def test_a_notebook_is_reached_with_its_token_and_without_the_visitors_session(gateway: Gateway) -> None:
    cookies = "_xsrf=1; __Host-notebook=secret; notebook=secret;username-8888=u; mynotebook=2"

    seen = gateway.notebook("/lab/tree/a%20b?x=1", headers=[("Cookie", cookies)]).seen

    assert (seen["server"], seen["path"], seen["query"]) == ("pod", "/lab/tree/a b", "x=1")
    assert seen["headers"]["authorization"] == TOKEN
    assert [c.strip() for c in seen["headers"]["cookie"].split(";")] == ["_xsrf=1", "username-8888=u", "mynotebook=2"]
    assert seen["headers"]["host"] == f"mine.notebooks.test:{gateway.port}"


@pytest.mark.parametrize("cookies", ["notebook=secret", "notebook=secret; a=1", "a=1; __Host-notebook=secret"])
def test_the_session_is_stripped_wherever_it_stands(gateway: Gateway, cookies: str) -> None:
    seen = gateway.notebook(headers=[("Cookie", cookies)]).seen

    assert seen["headers"].get("cookie", "") in {"", "a=1"}


def test_doors_is_asked_with_the_cookie_the_uri_and_the_method(gateway: Gateway) -> None:
    headers = [
        ("Cookie", "__Host-notebook=s"),
        ("X-Forwarded-Host", "other.notebooks.test"),
        ("X-Forwarded-Uri", "/x"),
        ("Connection", "X-Forwarded-Host, X-Forwarded-Uri, X-Forwarded-Method"),
    ]

    gateway.notebook("/api/contents?x=1", method="DELETE", headers=headers)

    asked = gateway.doors.asked[-1]
    assert (asked["type"], asked["method"], asked["path"]) == ("http", "GET", "/gateway/authorize")
    assert asked["headers"]["x-forwarded-host"] == f"mine.notebooks.test:{gateway.port}"
    assert asked["headers"]["x-forwarded-uri"] == "/api/contents?x=1"
    assert asked["headers"]["x-forwarded-method"] == "DELETE"
    assert asked["headers"]["cookie"] == "__Host-notebook=s"


@pytest.mark.parametrize("hop_by_hop", [[], [("Connection", "X-Notebook-Upstream")]])
@pytest.mark.parametrize("name", ["mine", "nameless", "stranger"])
def test_the_client_cannot_name_the_upstream(gateway: Gateway, name: str, hop_by_hop: list[tuple[str, str]]) -> None:
    headers = [
        ("X-Notebook-Upstream", gateway.evil_address),
        ("x-notebook-upstream", gateway.evil_address),
        ("Authorization", "token guessed"),
    ]

    answer = gateway.notebook(name=name, headers=headers + hop_by_hop)

    assert gateway.evil.asked == []
    assert "authorization" not in gateway.doors.asked[-1]["headers"]
    assert "x-notebook-upstream" not in gateway.doors.asked[-1]["headers"]
    if name == "mine":
        assert answer.seen["headers"]["authorization"] == TOKEN
    else:
        assert answer.status in {404, 500, 502, 503}


def test_identities_that_the_client_claims_reach_nobody(gateway: Gateway) -> None:
    claimed = ["Remote-User", "X-Remote-User", "X-Remote-Group", "X-Forwarded-User", "X-Auth-Request-Email"]

    seen = gateway.notebook(headers=[(name, "olga") for name in claimed]).seen

    for headers in (seen["headers"], gateway.doors.asked[-1]["headers"]):
        assert "olga" not in headers.values()


def test_a_refusal_passes_through_unchanged(gateway: Gateway) -> None:
    stranger, visitor = gateway.notebook(name="stranger"), gateway.notebook(name="login")

    assert (stranger.status, stranger.text) == (404, "no such notebook")
    assert (visitor.status, visitor.headers["location"]) == (302, "http://portal.test/login")
    assert visitor.headers["set-cookie"] == "seen=1"


def test_the_ticket_is_redeemed_by_doors_on_the_notebooks_own_host(gateway: Gateway) -> None:
    headers = [("Origin", "http://portal.test"), ("Authorization", "token guessed")]

    seen = gateway.notebook("/gateway/open?ticket=once-only", headers=headers).seen

    assert (seen["server"], seen["path"]) == ("doors", "/gateway/open")
    assert seen["headers"]["host"] == f"mine.notebooks.test:{gateway.port}"
    assert "authorization" not in seen["headers"]


def test_another_origin_may_not_use_the_visitors_session(gateway: Gateway) -> None:
    own = f"http://mine.notebooks.test:{gateway.port}"
    for origin in (f"http://other.notebooks.test:{gateway.port}", "http://evil.test", "null", own + ".evil.test"):
        assert gateway.notebook(headers=[("Origin", origin)]).status == 403

    assert gateway.notebook(headers=[("Origin", own)]).status == 200


def test_a_websocket_works_and_is_authorised_as_a_plain_get(gateway: Gateway) -> None:
    host = f"mine.notebooks.test:{gateway.port}"
    with connect(
        f"ws://{host}/api/kernels/1/channels",
        sock=socket.create_connection(("127.0.0.1", gateway.port)),
        origin=f"http://{host}",  # type: ignore[arg-type]  # a NewType of str
        additional_headers={"Cookie": "notebook=secret; a=1", "Authorization": "token guessed"},
        compression=None,
        proxy=None,
    ) as channel:
        seen = json.loads(channel.recv(DEADLINE_S))
        channel.send("6*7")
        assert channel.recv(DEADLINE_S) == "pod heard 6*7"

    assert (seen["server"], seen["type"], seen["headers"]["authorization"]) == ("pod", "websocket", TOKEN)
    assert seen["headers"]["cookie"] == "a=1"
    asked = gateway.doors.asked[-1]
    assert (asked["type"], asked["method"], asked["headers"]["x-forwarded-uri"]) == (
        "http",
        "GET",
        "/api/kernels/1/channels",
    )


@pytest.mark.parametrize(("name", "origin", "status"), [("stranger", "", 404), ("mine", "http://evil.test", 403)])
def test_a_refused_websocket_is_not_opened(gateway: Gateway, name: str, origin: str, status: int) -> None:
    host = f"{name}.notebooks.test:{gateway.port}"
    with (
        pytest.raises(InvalidStatus) as refused,
        connect(
            f"ws://{host}/api/kernels/1/channels",
            sock=socket.create_connection(("127.0.0.1", gateway.port)),
            origin=origin or f"http://{host}",  # type: ignore[arg-type]  # a NewType of str
            proxy=None,
        ),
    ):
        pass

    assert refused.value.response.status_code == status


def test_a_notebook_that_does_not_answer_is_said_so(gateway: Gateway) -> None:
    answer = gateway.notebook(name="gone")

    assert (answer.status, answer.headers["retry-after"]) == (502, "5")
    assert "reload" in answer.text


def test_the_access_log_holds_no_secret(gateway: Gateway) -> None:
    marker, secrets = "log-probe", ("ticket-of-gold", "cookie-of-gold", "bearer-of-gold", TOKEN)
    headers = [
        ("Cookie", f"notebook={secrets[1]}"),
        ("Authorization", secrets[2]),
        ("Referer", f"/?ticket={secrets[0]}"),
    ]

    gateway.notebook(f"/gateway/open?ticket={secrets[0]}&{marker}=1", headers=headers)
    gateway.notebook(f"/lab?token={secrets[0]}&{marker}=2", headers=headers)

    until(lambda: gateway.log.read_text().count(marker) >= 2, "two requests in the access log")
    log = gateway.log.read_text()
    assert not [secret for secret in secrets if secret in log]
    [line] = [json.loads(line) for line in log.splitlines() if f"{marker}=1" in line]
    assert parse_qs(urlsplit(line["request"]["uri"]).query)["ticket"] == ["***"]
