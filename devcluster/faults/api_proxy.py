"""A proxy in front of the API server that injects faults of networks and servers into chosen calls.

    with ApiProxy(kubeconfigs["worker"], tmp_path) as proxy:
        rule = proxy.when("create", "jobs").drop_answer()
        ... run something with proxy.kubeconfig ...
        rule.wait()

Clients connect with plain HTTP to a port on loopback: `kubeconfig` has its address and the token of the original
kubeconfig. The proxy connects to the API server with the certificates of the original kubeconfig.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.faults.rules import READS, WRITES, Call, Rule, call_of
from devcluster.faults.tcp_proxy import reset

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host", "content-length"}
UPSTREAM_S = 330.0  # longer than any watch that a client requests


@dataclass(frozen=True)
class Done:
    """A call that went through the proxy. `status` is the API server's; 0 if the proxy did not forward the call."""

    call: Call
    status: int


class ApiProxy:
    def __init__(self, kubeconfig: str | Path, directory: Path) -> None:
        """`directory`: where the proxy writes its own kubeconfig."""
        self.api = Api(kubeconfig, timeout_s=UPSTREAM_S)
        self.kubeconfig = directory / f"proxied-{Path(kubeconfig).name}"
        self.done: list[Done] = []
        self._rules: list[Rule] = []
        self._up = threading.Event()
        self._up.set()
        self._open: set[_Handler] = set()
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self._refusing = False

    def __enter__(self) -> ApiProxy:
        self._server = _Server(self)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.kubeconfig.write_text(json.dumps(self._own_kubeconfig()))
        self.kubeconfig.chmod(0o600)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._up.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
        self.cut()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port if self._server else 0}"

    # faults of single calls and events

    def when(
        self,
        verb: str | Iterable[str] = WRITES | READS,
        resource: str = "",
        *,
        namespace: str = "",
        name: str = "",
        nth: int = 1,
        times: int | None = 1,
        predicate: Callable[[Call, Json | None], bool] | None = None,
    ) -> Rule:
        """Returns a new rule for calls with this verb (or one of several, as in WRITES). It has no effect until a
        method of Rule sets its fault.
        """
        verbs = frozenset({verb} if isinstance(verb, str) else verb)
        rule = Rule(verbs, resource, namespace, name, nth, times, predicate)
        with self._lock:
            self._rules.append(rule)
        return rule

    def forget(self) -> None:
        """Removes all rules."""
        with self._lock:
            self._rules.clear()

    # faults of all calls

    def pause(self) -> None:
        """Accepts connections but does not answer until `resume`, like a server that hangs. Watches receive nothing."""
        self._up.clear()

    def refuse(self) -> None:
        """Resets open and new connections until `resume`, like a server that is down."""
        self._refusing = True
        self.cut()

    def resume(self) -> None:
        self._refusing = False
        self._up.set()

    def cut(self) -> None:
        """Resets all open connections, including watches. New connections work."""
        with self._lock:
            handlers, self._open = self._open, set()
        for handler in handlers:
            handler.let_go()
            reset(handler.connection)

    # recorded calls

    def calls(self, verb: str | Iterable[str] = WRITES | READS, resource: str = "") -> list[Done]:
        """Returns the calls that the API server answered so far, in the order of its answers."""
        verbs = {verb} if isinstance(verb, str) else set(verb)
        with self._lock:
            return [d for d in self.done if d.call.verb in verbs and resource in ("", d.call.resource) and d.status]

    # used by the request handler

    def rules_for(self, call: Call, event: Json | None = None) -> list[Rule]:
        with self._lock:
            rules = list(self._rules)
        return [rule for rule in rules if rule.strikes(call, event)]

    def note(self, call: Call, status: int) -> None:
        with self._lock:
            self.done.append(Done(call, status))

    def wait_until_up(self) -> None:
        self._up.wait()

    @property
    def refusing(self) -> bool:
        return self._refusing

    def opened(self, handler: _Handler) -> None:
        with self._lock:
            self._open.add(handler)

    def closed(self, handler: _Handler) -> None:
        with self._lock:
            self._open.discard(handler)

    def _own_kubeconfig(self) -> Json:
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "proxied",
            "contexts": [{"name": "proxied", "context": {"cluster": "proxied", "user": "proxied"}}],
            "clusters": [{"name": "proxied", "cluster": {"server": self.url}}],
            "users": [{"name": "proxied", "user": {"token": self.api.token} if self.api.token else {}}],
        }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, proxy: ApiProxy) -> None:
        self.proxy = proxy
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Prints nothing: connections that break are expected here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.proxy = self.server.proxy
        self.upstream: http.client.HTTPConnection | None = None
        self.hung_up = threading.Event()
        self.proxy.opened(self)

    def finish(self) -> None:
        self.proxy.closed(self)
        if self.upstream is not None:
            self.upstream.close()
        with suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Prints nothing: `ApiProxy.done` records the calls."""

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        call = call_of(self.command, self.path, self.headers.get("Content-Type", ""))
        if self.proxy.refusing:
            return self._reset()
        self.proxy.wait_until_up()
        faults = {rule.fault: rule for rule in self.proxy.rules_for(call)}
        for rule in faults.values():
            if rule.fault == "delay":
                rule.note()
                time.sleep(rule.argument)
            elif rule.fault == "call_before":
                rule.argument()
                rule.note()
        if "call_before" in faults and self._client_left():
            return self._reset()
        for rule in faults.values():
            if rule.fault in ("refuse", "drop_before", "status"):
                self.proxy.note(call, 0)
                return self._instead(rule)
        return self._forward(call, body, faults)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = do_GET

    def _instead(self, rule: Rule) -> None:
        try:
            if rule.fault == "refuse":
                self._reset()
            elif rule.fault == "drop_before":
                self._close()
            else:
                code, body = rule.argument
                self._answer(code, json.dumps(body or _status(code)).encode(), {"Content-Type": "application/json"})
        finally:
            rule.note()

    def _forward(self, call: Call, body: bytes, faults: dict[str, Rule]) -> None:
        response = self._ask(body)
        if call.verb == "watch" and response.status == 200:
            self.proxy.note(call, response.status)
            return self._relay_watch(call, response)
        if call.resource.endswith("/log") and response.status == 200:
            self.proxy.note(call, response.status)
            return self._relay_stream(response)
        data = response.read()
        self.proxy.note(call, response.status)
        if rule := faults.get("call_after"):
            rule.argument()
            rule.note()
        if rule := faults.get("drop_answer"):
            self._close()
            return rule.note()
        self.proxy.wait_until_up()
        headers = {key: value for key, value in response.getheaders() if key.lower() not in HOP_BY_HOP}
        return self._answer(response.status, data, headers)

    def _ask(self, body: bytes) -> http.client.HTTPResponse:
        """Forwards the request, on one connection to the API server per client connection. Adds the token of the
        kubeconfig if the client sent none.
        """
        headers = {key: value for key, value in self.headers.items() if key.lower() not in HOP_BY_HOP}
        headers |= {"Content-Length": str(len(body))} if body or self.command in ("POST", "PUT", "PATCH") else {}
        if self.proxy.api.token and "authorization" not in {key.lower() for key in headers}:
            headers["Authorization"] = f"Bearer {self.proxy.api.token}"
        if self.upstream is None:
            self.upstream = self.proxy.api.connect(UPSTREAM_S)
        self.upstream.request(self.command, self.path, body=body or None, headers=headers)
        return self.upstream.getresponse()

    def _answer(self, code: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response_only(code)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    # watches

    def _begin_stream(self, response: http.client.HTTPResponse) -> None:
        self.send_response_only(200)
        self.send_header("Content-Type", response.getheader("Content-Type") or "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        threading.Thread(target=self._notice_hang_up, daemon=True).start()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _relay_stream(self, response: http.client.HTTPResponse) -> None:
        self._begin_stream(response)
        while data := response.read1(65_536):
            self.proxy.wait_until_up()
            self._chunk(data)
        self._chunk(b"")

    def _relay_watch(self, call: Call, response: http.client.HTTPResponse) -> None:
        self._begin_stream(response)
        held: list[bytes] = []
        while line := response.readline():
            self.proxy.wait_until_up()
            faults = {rule.fault: rule for rule in self.proxy.rules_for(call, json.loads(line))}
            if "reorder" in faults:
                held.append(line)
            elif "gone" in faults:
                self._chunk(json.dumps({"type": "ERROR", "object": _status(410)}).encode() + b"\n")
            elif not faults.keys() & {"drop_event", "silence"}:
                for data in (line, *([line] if "duplicate" in faults else []), *held):
                    self._chunk(data)
                held.clear()
            for rule in faults.values():
                rule.note()
            if "gone" in faults:
                break
            if "silence" in faults:
                self.hung_up.wait()
                return
        self._chunk(b"".join(held))
        if held:
            self._chunk(b"")

    def _notice_hang_up(self) -> None:
        """If the client disconnects during a stream, closes the connection to the API server, too."""
        with suppress(OSError):
            self.connection.recv(1, socket.MSG_PEEK)
        self.let_go()

    def _client_left(self) -> bool:
        try:
            return not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def let_go(self) -> None:
        self.hung_up.set()
        if self.upstream is not None and self.upstream.sock is not None:
            with suppress(OSError):
                self.upstream.sock.shutdown(socket.SHUT_RDWR)

    # closing without an answer

    def _close(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _reset(self) -> None:
        self.close_connection = True
        reset(self.connection)


def _status(code: int) -> Json:
    reason, message = {
        409: ("Conflict", "the object has been modified; please apply your changes to the latest version"),
        410: ("Expired", "too old resource version"),
        429: ("TooManyRequests", "too many requests, please try again later"),
        503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
        504: ("Timeout", "the server was unable to return a response in the time allotted"),
    }.get(code, ("InternalError" if code >= 500 else "Forbidden", "said by the fault proxy"))
    kind = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return kind | {"message": message, "reason": reason, "code": code}
