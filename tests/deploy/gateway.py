"""Caddy with the portal's Caddyfile between a client and small uvicorn servers that report their requests."""

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

import uvicorn

from devcluster.processes.ports import free_port
from tests.support.cluster.identities import DEADLINE_S, until
from tests.support.shipped import DEPLOY

Json = dict[str, Any]
Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]
TOKEN = "token of-the-notebook"
# Of paths that the servers do not have: Jupyter's own page, what its API says, and a page of something behind it.
JUPYTERS = {"content-security-policy": "frame-ancestors 'self'; report-uri /api/security/csp-report"}
ERRORS = {
    "/none": {**JUPYTERS, "content-type": "text/html"},
    "/api/none": {**JUPYTERS, "content-type": "application/json"},
    "/proxy/none": {"content-type": "text/html"},
}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def seen(self) -> Json:
        """The request that the server behind the gateway received."""
        return json.loads(self.text)


class Recorder:
    """An ASGI app that answers with its own name and the request it got; echoes WebSockets."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[Json] = []
        self.pod = ""
        self.is_signed_out = False
        self.kind = "application/json"

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return
        asked = self._read(scope)
        self.asked.append(asked)
        if scope["type"] == "websocket":
            await self._echo(asked, receive, send)
        elif asked["path"] in ERRORS:
            await _respond(send, 404, ERRORS[asked["path"]], f"not found, {TOKEN}")
        elif asked["path"] == "/gateway/authorize":
            await self._authorize(asked, send)
        else:
            await _respond(send, 200, {"content-type": self.kind}, json.dumps(asked))

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
        if self.is_signed_out:
            await _respond(send, 401, {}, "Open this notebook from its page in the portal.")
        elif notebook == "login":
            await _respond(send, 302, {"location": "http://portal.test/login", "set-cookie": "seen=1"}, "")
        elif notebook == "nameless":  # authorized, but doors gives no upstream
            await _respond(send, 200, {}, "")
        elif notebook == "gone":
            free = free_port()
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
        self,
        host: str,
        path: str = "/",
        *,
        method: str = "GET",
        headers: list[tuple[str, str]] | None = None,
        body: bytes = b"",
    ) -> Answer:
        """`body`: as it is sent, its length or its chunks are up to the caller."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        connection.putrequest(method, path, skip_host=True)
        for name, value in [("Host", host), *(headers or [])]:
            connection.putheader(name, value)
        connection.endheaders(body or None)
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        body = response.read()
        answer = Answer(response.status, found, "" if "content-encoding" in found else body.decode())
        connection.close()
        return answer

    def notebook(self, path: str = "/lab", *, name: str = "mine", **more: Any) -> Answer:
        return self.ask(f"{name}.notebooks.test:{self.port}", path, **more)

    def portal(self, path: str, **more: Any) -> Answer:
        return self.ask(f"portal.test:{self.port}", path, **more)


@contextmanager
def serving(app: Recorder) -> Iterator[str]:
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
def caddy(program: Path, environment: dict[str, str], log: Path) -> Iterator[None]:
    arguments = [program, "run", "--config", DEPLOY / "Caddyfile", "--adapter", "caddyfile"]
    with (
        log.open("wb") as stderr,
        subprocess.Popen(arguments, env=environment, stderr=stderr, stdout=stderr) as process,
    ):
        try:
            yield
        finally:
            process.terminate()
            process.wait(DEADLINE_S)


@contextmanager
def running(services: Json, home: Path, **settings: str) -> Iterator[Gateway]:
    web, doors, pod, evil = (Recorder(name) for name in ("web", "doors", "pod", "evil"))
    port, log = free_port(), home / "log"
    with serving(web) as web_at, serving(doors) as doors_at, serving(pod) as pod_at, serving(evil) as evil_at:
        doors.pod = pod_at
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "GATEWAY_ADDRESS": f"http://:{port}",
            "WEB_UPSTREAM": web_at,
            "DOORS_UPSTREAM": doors_at,
            "PORTAL_HOST": "portal.test",
            "NOTEBOOKS_DOMAIN": f"notebooks.test:{port}",
            **settings,
        }
        with caddy(Path(services["bin_dir"]) / "caddy", environment, log):
            gateway = Gateway(port, web, doors, pod, evil, evil_at, log)
            until(lambda: _lives(gateway), "gateway up")
            yield gateway


def _lives(gateway: Gateway) -> bool:
    try:
        return gateway.ask("localhost", "/livez").status == 200
    except OSError:
        return False
