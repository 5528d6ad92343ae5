"""Notebook servers run the team's code: late, long, false and redirected answers count as no answer."""

from __future__ import annotations

import json
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from cluster.client import jupyter
from cluster.client.jupyter import Kernel, NotebookActivity, NotebookUnreachable

AT = "2026-11-22T14:02:00.000000Z"
MOMENT = datetime(2026, 11, 22, 14, 2, tzinfo=UTC)
STATUS = {"started": AT, "last_activity": AT, "connections": 1, "kernels": 1}
KERNEL = {"id": "a", "name": "python3", "last_activity": AT, "execution_state": "idle", "connections": 1}
GOOD = {"/api/status": STATUS, "/api/kernels": [KERNEL], "/api/terminals": [{"name": "1", "last_activity": AT}]}
Answer = Callable[[str], bytes]


def plain(body: Any, status: str = "200 OK", *headers: str) -> bytes:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(raw)}", *headers, "", ""]).encode() + raw


def answers(**replaced: Any) -> Answer:
    known = {**GOOD, **{f"/api/{name}": body for name, body in replaced.items()}}
    return lambda path: plain(known[path.partition("?")[0]])


@contextmanager
def server(answer: Answer, asked: list[str] | None = None) -> Iterator[int]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            first = self.rfile.readline().decode()
            lines = [first, *iter(lambda: self.rfile.readline().decode(), "\r\n")]
            if asked is not None:
                asked.append("".join(lines))
            try:
                self.wfile.write(answer(first.split()[1]))
            except OSError:
                return

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield listening.server_address[1]
        finally:
            listening.shutdown()


def test_what_jupyter_answers() -> None:
    asked: list[str] = []
    with server(answers(), asked) as port:
        found = jupyter.read_activity("127.0.0.1", "sesame", port=port)
    assert found == NotebookActivity(MOMENT, 1, (Kernel("idle", MOMENT, 1),), (MOMENT,))
    assert [one.splitlines()[0] for one in asked] == [
        "GET /api/status HTTP/1.0",
        "GET /api/kernels?no_track_activity=1 HTTP/1.0",
        "GET /api/terminals?no_track_activity=1 HTTP/1.0",
    ]
    assert all("Authorization: token sesame\r\n" in one for one in asked)


def test_a_server_without_terminals_has_none() -> None:
    def answer(path: str) -> bytes:
        return plain({}, "404 Not Found") if "terminals" in path else answers()(path)

    with server(answer) as port:
        assert jupyter.read_activity("127.0.0.1", "sesame", port=port).terminals == ()


@pytest.mark.parametrize(
    ("state", "is_computing"),
    [("busy", True), ("idle", False), ("starting", False), ("dead", False), ("<script>", True), (7, True)],
)
def test_a_state_that_is_not_known_is_taken_for_work(state: Any, is_computing: bool) -> None:
    with server(answers(kernels=[KERNEL | {"execution_state": state}])) as port:
        [kernel] = jupyter.read_activity("127.0.0.1", "sesame", port=port).kernels
    assert kernel.is_computing is is_computing
    assert kernel.state in {"busy", "unknown", *jupyter.RESTING_STATES}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda path: plain({}, "403 Forbidden"), id="refused"),
        pytest.param(lambda path: plain({}, "302 Found", "Location: http://169.254.169.254/"), id="moved"),
        pytest.param(lambda path: b"", id="nothing"),
        pytest.param(lambda path: b"SSH-2.0-OpenSSH_9.9\r\n", id="something else"),
        pytest.param(lambda path: plain(b"{"), id="half of it"),
        pytest.param(lambda path: plain(b"[" * 100_000), id="deep"),
        pytest.param(lambda path: plain(b" " * (jupyter.ANSWER_BYTES_MOST + 1)), id="long"),
        pytest.param(lambda path: plain(b"\xff\xfe"), id="no text"),
        pytest.param(answers(status=[]), id="a list"),
        pytest.param(answers(status=STATUS | {"last_activity": "yesterday"}), id="no time"),
        pytest.param(answers(status=STATUS | {"last_activity": 7}), id="a number for a time"),
        pytest.param(answers(status=STATUS | {"last_activity": "0001-01-01T00:00:00+14:00"}), id="before all time"),
        pytest.param(answers(status=STATUS | {"connections": -1}), id="less than none"),
        pytest.param(answers(status=STATUS | {"connections": True}), id="a truth"),
        pytest.param(answers(kernels={"a": 1}), id="kernels by name"),
        pytest.param(answers(kernels=[KERNEL] * 501), id="too many"),
        pytest.param(answers(kernels=["a"]), id="kernels by text"),
        pytest.param(answers(kernels=[KERNEL | {"execution_state": []}]), id="a state that is a list"),
        pytest.param(answers(terminals=[{}]), id="terminals without a time"),
    ],
)
def test_what_is_no_answer(answer: Answer) -> None:
    with server(answer) as port, pytest.raises(NotebookUnreachable):
        jupyter.read_activity("127.0.0.1", "sesame", port=port)


def test_nobody_there_is_no_answer() -> None:
    with server(answers()) as port:
        pass
    with pytest.raises(NotebookUnreachable, match="does not respond"):
        jupyter.read_activity("127.0.0.1", "sesame", port=port)


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
def test_one_who_drips_is_not_waited_for(first: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that sends single bytes would hold a worker forever if each read had its own time limit."""
    monkeypatch.setattr(jupyter, "ANSWER_WITHIN_S", 0.5)
    ended = threading.Event()

    class Drips(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(first)
            try:
                while not ended.wait(0.05):
                    self.wfile.write(b" ")
            except OSError:
                return

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Drips) as listening:
        threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        began = time.monotonic()
        threading.Timer(6, ended.set).start()
        with pytest.raises(NotebookUnreachable, match=r"within 0\.5 s"):
            jupyter.read_activity("127.0.0.1", "sesame", port=listening.server_address[1])
        assert time.monotonic() - began < 5
        ended.set()
        listening.shutdown()
