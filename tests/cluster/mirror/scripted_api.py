"""An API server that plays a script: the test writes what it answers to lists and watches.

It speaks plain HTTP to the portal's real client. A watch for which no script is left stays open and silent.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cluster.client.kube import Kube

Raw = dict[str, Any]
Step = Raw | Callable[["Answer"], None]


def pod(name: str, version: int, *, node: str = "", phase: str = "Running", owner: str = "", uid: str = "") -> Raw:
    labels = {"app.kubernetes.io/managed-by": "gpu-portal", "gpu-portal/owner": owner} if owner else {}
    return {
        "metadata": {
            "name": name,
            "namespace": "team-a",
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-11-21T09:00:00Z",
            "labels": labels,
        },
        "spec": {"nodeName": node, "containers": [{"name": "main"}]},
        "status": {"phase": phase},
    }


def added(raw: Raw) -> Raw:
    return {"type": "ADDED", "object": raw}


def modified(raw: Raw) -> Raw:
    return {"type": "MODIFIED", "object": raw}


def deleted(raw: Raw) -> Raw:
    return {"type": "DELETED", "object": raw}


def bookmark(version: int) -> Raw:
    return {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": str(version)}}}


def expired() -> Raw:
    return {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}


def listing(version: int, *items: Raw, more: str = "") -> Raw:
    metadata = {"resourceVersion": str(version), **({"continue": more} if more else {})}
    return {"kind": "PodList", "metadata": metadata, "items": list(items)}


def silent(answer: Answer) -> None:
    """Sends nothing more and keeps the connection open."""
    answer.wait_for_end()


def drop(answer: Answer) -> None:
    """The connection breaks off in the middle of the answer."""
    answer.break_off()


def garbage(answer: Answer) -> None:
    answer.send(b"{not json\n")


class Answer:
    """What a step that is a function may do with the connection."""

    def __init__(self, handler: BaseHTTPRequestHandler, ended: threading.Event) -> None:
        self._handler = handler
        self._ended = ended
        self.is_broken = False

    def send(self, data: bytes) -> None:
        self._handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self._handler.wfile.flush()

    def wait_for_end(self) -> None:
        self._ended.wait(30)

    def break_off(self) -> None:
        self.is_broken = True


class ScriptedApi:
    """`lists`: one after the other, the last one repeatedly; a number is an HTTP status. `watches`: one script per
    connection. `heads`: the server's resource version, for GETs of one object. `asked`: every request as (path, query).
    `retry_after`: this header of every answer with such a status.
    """

    def __init__(self) -> None:
        self.lists: deque[Raw | int] = deque()
        self.watches: deque[Sequence[Step] | int] = deque()
        self.heads: deque[int] = deque()
        self.retry_after = ""
        self.asked: list[tuple[str, dict[str, str]]] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def watched_from(self) -> list[str]:
        """The resource versions from which watches were opened."""
        return [query["resourceVersion"] for _path, query in self.asked if "watch" in query]

    @property
    def full_lists(self) -> int:
        """The number of full lists; requests for one object are not counted."""
        return sum("watch" not in q and q["limit"] != "1" and "continue" not in q for _path, q in self.asked)

    def client(self, directory: Path) -> Kube:
        port = self._server.server_address[1]
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "u", "user": {}}],
        }
        path = directory / "kubeconfig.json"
        path.write_text(json.dumps(config))
        return Kube(str(path))

    def _next(self, query: dict[str, str]) -> Raw | int | Sequence[Step]:
        with self._lock:
            if "watch" in query:
                return self.watches.popleft() if self.watches else [silent]
            if query.get("limit") == "1":
                if isinstance(self.lists[0], int):
                    return self.lists[0]
                return listing(self.heads.popleft() if self.heads else 1)
            return self.lists.popleft() if len(self.lists) > 1 else self.lists[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                url = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(url.query).items()}
                api.asked.append((url.path, query))
                found = api._next(query)
                if isinstance(found, int):
                    self._reply(found, {"kind": "Status", "code": found, "message": f"scripted {found}"})
                elif isinstance(found, dict):
                    self._reply(200, found)
                else:
                    self._play(found)

            def _reply(self, status: int, body: Raw) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                if api.retry_after and status >= 400:
                    self.send_header("Retry-After", api.retry_after)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def _play(self, script: Sequence[Step]) -> None:
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.flush()
                self.close_connection = True
                answer = Answer(self, api._ended)
                for step in script:
                    if callable(step):
                        step(answer)
                    else:
                        answer.send(json.dumps(step).encode() + b"\n")
                if not answer.is_broken:
                    self.wfile.write(b"0\r\n\r\n")

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler
