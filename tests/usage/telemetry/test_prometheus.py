"""Answers that are none: each is one sentence, within the limits of time and size, and without the site's secrets."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.core.exceptions import ImproperlyConfigured

from portal.core.connections.prometheus_server import PrometheusServer, prometheus_server
from usage.telemetry import prometheus
from usage.telemetry.prometheus import AnswerTooLarge, PrometheusUnreadable, query_range
from usage.telemetry.types import RangeAnswer

Handler = BaseHTTPRequestHandler
SERIES = {"metric": {"pod": "one", "namespace": "team-a"}, "values": [[60, "1.5"], [120, "2"]]}
NOTHING: dict[str, Any] = {"basic": ("", ""), "token": "", "org": "", "ca_file": "", "metrics": {}}


def matrix(*series: Any, **more: Any) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}, **more}).encode()


@contextmanager
def serving(answer: Callable[[Handler], None]) -> Iterator[tuple[str, list[Handler]]]:
    asked: list[Handler] = []

    class Server(BaseHTTPRequestHandler):
        form: dict[str, list[str]]

        def do_POST(self) -> None:
            self.form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            asked.append(self)
            with suppress(BrokenPipeError, ConnectionResetError):  # the client has enough
                answer(self)

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def body(content: bytes, status: int = 200, **headers: str) -> Callable[[Handler], None]:
    def answer(handler: Handler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def asked(
    answer: Callable[[Handler], None], *, within_s: float = 5.0, until: Event | None = None, **server: Any
) -> RangeAnswer:
    """`until` is set when the client has given up."""
    with serving(answer) as (url, _):
        try:
            return query_range(
                PrometheusServer(url, **server), "up", start=60, end=120, step_s=60, until=time.monotonic() + within_s
            )
        finally:
            if until is not None:
                until.set()


def assert_given_up(event: Event) -> None:
    assert event.wait(30)


def test_a_matrix_is_read() -> None:
    found = asked(body(matrix(SERIES)))
    assert [(dict(one.labels), one.points) for one in found.series] == [(SERIES["metric"], ((60, 1.5), (120, 2.0)))]
    assert not found.is_partial
    assert asked(body(matrix())).series == ()


def test_only_numbers_of_moments_that_were_asked_for() -> None:
    """A clock that is ahead, and what is no number."""
    values = [[0, "7"], [60, "NaN"], [60, "+Inf"], [60, "3"], [121, "9"], [1e12, "9"]]
    assert asked(body(matrix({"metric": {}, "values": values}))).series[0].points == ((60, 3.0),)


def test_warnings_make_an_answer_partial() -> None:
    assert asked(body(matrix(SERIES, warnings=["store-2: context deadline exceeded"]))).is_partial


@pytest.mark.parametrize(
    ("content", "status", "sentence"),
    [
        (b"<html>Sign in</html>", 200, "The answer is not that of a Prometheus."),
        (b"", 200, "The answer is not that of a Prometheus."),
        (b"[" * 100_000, 200, "The answer is not that of a Prometheus."),
        (b'{"status": "success", "data": {"resultType": "vector", "result": []}}', 200, "The answer is not that of a"),
        (b'{"status": "success", "data": {"resultType": "matrix", "result": [{}]}}', 200, "The answer is not that of"),
        (matrix({"metric": {}, "values": [[60, "much"]]}), 200, "The answer is not that of a Prometheus."),
        (matrix({"metric": [], "values": []}), 200, "The answer is not that of a Prometheus."),
        (b'{"status": "error", "errorType": "execution", "error": "many-to-many"}', 422, "status 422 (execution)."),
        (b'{"status": "error", "errorType": "<b>bad</b>"}', 400, "Prometheus responded with status 400."),
        (b"<html>Bad gateway</html>", 502, "Prometheus responded with status 502."),
        (b"", 302, "Prometheus responded with status 302."),
    ],
)
def test_anything_else_is_one_sentence(content: bytes, status: int, sentence: str) -> None:
    with pytest.raises(PrometheusUnreadable) as refused:
        asked(body(content, status, Location="http://127.0.0.1:1/elsewhere"))
    assert sentence in str(refused.value)


def test_an_endless_answer_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "ANSWER_BYTES_MOST", 3_000_000)
    sent = 0

    def endless(handler: Handler) -> None:
        nonlocal sent
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(b" " * 100_000)
            sent += 100_000

    with pytest.raises(AnswerTooLarge, match="more than 2 MiB"):
        asked(endless)
    assert sent < 50_000_000


def test_a_small_answer_that_unpacks_to_a_large_one_is_not_unpacked() -> None:
    packed = gzip.compress(b" " * 100_000_000)
    with pytest.raises(PrometheusUnreadable, match="not that of a Prometheus"):
        asked(body(packed, **{"Content-Encoding": "gzip"}))


def test_a_slow_answer_is_given_up() -> None:
    given_up = Event()

    def slow(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not given_up.wait(0.05):
            handler.wfile.write(b" ")
            handler.wfile.flush()

    began = time.monotonic()
    with pytest.raises(PrometheusUnreadable, match="too slowly"):
        asked(slow, within_s=1.0, until=given_up)
    assert time.monotonic() - began < 4


def test_silence_is_given_up() -> None:
    began, given_up = time.monotonic(), Event()
    with pytest.raises(PrometheusUnreadable, match=r"does not respond \(too slow\)"):
        asked(lambda _handler: assert_given_up(given_up), within_s=0.5, until=given_up)
    assert time.monotonic() - began < 6


def test_nobody_there(unused_tcp_port: int) -> None:
    server = PrometheusServer(f"http://127.0.0.1:{unused_tcp_port}")
    with pytest.raises(PrometheusUnreadable, match="does not respond"):
        query_range(server, "up", start=60, end=120, step_s=60, until=time.monotonic() + 3)


def test_what_is_sent() -> None:
    given = prometheus_server(**{**NOTHING, "url": "http://x", "token": "s3cret", "org": "gpu"})
    assert given is not None
    with serving(body(matrix())) as (url, found):
        server = PrometheusServer(url, given.token, given.org)
        query_range(server, "up", start=60, end=180, step_s=60, until=time.monotonic() + 5)
        basic = PrometheusServer(url, basic=("reader", "pass"))
        query_range(basic, "up", start=60, end=180, step_s=60, until=time.monotonic() + 5)
    first, second = found
    assert first.path == "/api/v1/query_range"
    assert (first.headers["Authorization"], first.headers["X-Scope-OrgID"]) == ("Bearer s3cret", "gpu")
    assert first.form["query"] == ["up"]  # type: ignore[attr-defined]
    assert [first.form[name] for name in ("start", "end", "step")] == [["60"], ["180"], ["60"]]  # type: ignore[attr-defined]
    assert second.headers["Authorization"] == "Basic cmVhZGVyOnBhc3M="
    assert "s3cret" not in repr(given)
    assert "pass" not in repr(basic)
    assert (given.secrets, basic.secrets) == (("s3cret",), ("pass",))


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"url": "prometheus:9090"}, "PROMETHEUS_URL"),
        ({"url": "http://user:word@prometheus"}, "PROMETHEUS_URL"),
        ({"url": "http://prometheus/?x=1"}, "PROMETHEUS_URL"),
        ({"url": "http://prometheus:port"}, "PROMETHEUS_URL"),
        ({"token": "t", "basic": ("u", "p")}, "PROMETHEUS_TOKEN_FILE"),
        ({"basic": ("u", "")}, "PROMETHEUS_PASSWORD_FILE"),
        ({"metrics": {"heat": "x"}}, "heat"),
        ({"metrics": {"power": 'x{y="z"}'}}, "no name of a metric"),
    ],
)
def test_malformed_settings_end_the_start(given: dict[str, Any], names: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=names):
        prometheus_server(**{**NOTHING, "url": "http://prometheus:9090", **given})


def test_without_an_address_there_is_none() -> None:
    assert prometheus_server(**{**NOTHING, "url": ""}) is None
    found = prometheus_server(**{**NOTHING, "url": "https://thanos/prom/", "metrics": {"power": "my_power"}})
    assert found is not None
    assert (found.url, found.metrics) == ("https://thanos/prom", {"power": "my_power"})
