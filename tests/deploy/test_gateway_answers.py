"""What the gateway itself answers and writes into its log, and which answers it compresses."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from devcluster.processes.ports import free_port
from portal.core.codes import CODES
from tests.deploy.gateway import Answer, Gateway, running
from tests.support.cluster.identities import until

Json = dict[str, Any]
PAGE, CALL = "/catalog", "/api/v1/workloads"
HTML = "text/html; charset=utf-8"


@pytest.fixture(scope="module")
def gateway(services: Json, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running(services, tmp_path_factory.mktemp("caddy")) as gateway:
        yield gateway


@contextmanager
def raw(answer: bytes) -> Iterator[str]:
    """host:port of a server that answers every connection with these bytes and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:  # closed
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)
                    connection.recv(1)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def assert_said(answer: Answer, path: str, status: int, code: str) -> None:
    """JSON below /api/, a sentence elsewhere; and never kept."""
    assert (answer.status, answer.headers["cache-control"]) == (status, "no-store")
    if path.startswith("/api/"):
        assert answer.headers["content-type"] == "application/json"
        body = json.loads(answer.text)
        assert (set(body), body["code"], body["field"]) == ({"code", "message", "field"}, code, None)
        assert body["message"].endswith(".")
        assert code in CODES
    else:
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.text.endswith(".")
        assert "{" not in answer.text


# ---- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [PAGE, CALL, f"{CALL}/one?wait=1", "/live/team-a"])
@pytest.mark.parametrize(
    ("query", "headers", "status", "code"),
    [
        ("x" * 4000, [], 414, "address_too_long"),
        ("x", [("Cookie", "a=" + "x" * 8000)], 431, "headers_too_large"),
        ("x", [("Content-Length", "1048577")], 413, "too_large"),
        ("x", [("Transfer-Encoding", "chunked")], 411, "length_required"),
    ],
    ids=["line", "cookies", "body", "chunks"],
)
def test_what_the_gateway_refuses_is_said_in_the_one_error_body(
    gateway: Gateway, path: str, query: str, headers: list[tuple[str, str]], status: int, code: str
) -> None:
    before = len(gateway.web.asked) + len(gateway.doors.asked)
    method = "POST" if "wait=" not in path and "live" not in path else "GET"

    # As much as the gateway reads before it answers; a client that sends less gets its answer when it is given up.
    body = {411: b"2\r\nhi\r\n0\r\n\r\n", 413: b"x" * 300_000}.get(status, b"")

    answer = gateway.portal(f"{path}{'&' if '?' in path else '?'}{query}", method=method, headers=headers, body=body)

    assert_said(answer, path, status, code)
    assert len(gateway.web.asked) + len(gateway.doors.asked) == before


def test_servers_that_are_away_are_said_in_the_one_error_body(services: Json, tmp_path: Path) -> None:
    nobody = {name: f"127.0.0.1:{free_port()}" for name in ("WEB_UPSTREAM", "DOORS_UPSTREAM")}
    with running(services, tmp_path, **nobody) as gateway:
        for path in (PAGE, "/", CALL, f"{CALL}/one?wait=1", "/live/team-a"):
            answer = gateway.portal(path)
            assert_said(answer, path, 502, "unavailable")
            assert answer.headers["retry-after"] == "5"


@pytest.mark.parametrize("path", [PAGE, CALL])
def test_what_a_server_says_before_the_portal_is_asked_is_replaced(services: Json, tmp_path: Path, path: str) -> None:
    said = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nContent-Length: 14\r\n\r\n<h1>Server</h1>"
    with raw(said) as web, running(services, tmp_path, WEB_UPSTREAM=web) as gateway:
        assert_said(gateway.portal(path), path, 400, "bad_request")


@pytest.mark.parametrize("path", [PAGE, CALL])
def test_what_the_portal_says_is_not_replaced(services: Json, tmp_path: Path, path: str) -> None:
    said = b"HTTP/1.1 400 Bad Request\r\nX-Request-Id: r\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nours"
    with raw(said) as web, running(services, tmp_path, WEB_UPSTREAM=web) as gateway:
        answer = gateway.portal(path)

    assert (answer.status, answer.text, answer.headers["content-type"]) == (400, "ours", "text/html")


def test_errors_of_a_notebooks_host_are_sentences(gateway: Gateway) -> None:
    """Jupyter's API has error bodies of its own."""
    answer = gateway.notebook("/api/contents", name="gone")

    assert (answer.status, answer.headers["content-type"]) == (502, "text/plain; charset=utf-8")


# ---- log ---------------------------------------------------------------------------------------------------------


def test_the_error_log_holds_no_secret(services: Json, tmp_path: Path) -> None:
    """The log of an answer that breaks off has the whole request. It is another logger than that of the accesses."""
    secrets = ["query-of-gold", "cookie-of-gold", "csrf-of-gold", "bearer-of-gold", "answer-of-gold"]
    headers = [("Cookie", f"session={secrets[1]}"), ("X-CSRFToken", secrets[2]), ("Authorization", secrets[3])]
    headers.append(("Referer", f"http://portal.test/?token={secrets[0]}"))
    breaks_off = f"HTTP/1.1 200 OK\r\nSet-Cookie: a={secrets[4]}\r\nContent-Length: 100\r\n\r\nonly".encode()
    with raw(breaks_off) as web, running(services, tmp_path, WEB_UPSTREAM=web) as gateway:
        port = gateway.port
        for path in (f"/gateway?ticket={secrets[0]}", f"{CALL}?token={secrets[0]}&x=1"):
            with socket.create_connection(("127.0.0.1", port), 10) as visitor:
                lines = [f"GET {path} HTTP/1.1", "Host: portal.test", *(f"{name}: {value}" for name, value in headers)]
                visitor.sendall("\r\n".join([*lines, "", ""]).encode())
                while visitor.recv(65536):
                    pass
        until(lambda: gateway.log.read_text().count("incomplete response") == 2, "both are in the log")
        log = gateway.log.read_text()

    assert [secret for secret in secrets if secret in log] == []
    broken = [json.loads(line) for line in log.splitlines() if "incomplete response" in line]
    assert [line["request"]["uri"] for line in broken] == ["/gateway?ticket=***", f"{CALL}?token=***&x=***"]


# ---- compression -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("site", "path", "kind", "is_compressed"),
    [
        ("same-origin", PAGE, HTML, True),
        ("none", PAGE, HTML, True),
        ("same-site", PAGE, HTML, False),
        ("cross-site", PAGE, HTML, False),
        ("", PAGE, HTML, False),
        ("same-origin", CALL, "application/json", False),
        ("same-origin", "/live/team-a", "text/event-stream", False),
        ("cross-site", "/static/portal.js", "text/javascript", True),
        ("", "/static/portal.css", "text/css", True),
    ],
)
def test_a_page_is_compressed_if_no_other_site_chose_its_address(
    gateway: Gateway, site: str, path: str, kind: str, is_compressed: bool
) -> None:
    """A site that chooses what a page repeats could otherwise learn the rest of the page from its length (BREACH)."""
    gateway.web.kind = gateway.doors.kind = kind
    asked = [("Accept-Encoding", "gzip"), ("X-Fill", "x" * 2000), *([("Sec-Fetch-Site", site)] if site else [])]

    answer = gateway.portal(path, headers=asked)

    assert answer.status == 200
    assert (answer.headers.get("content-encoding") == "gzip") is is_compressed
