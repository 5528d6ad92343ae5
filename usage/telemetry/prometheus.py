"""Range queries to Prometheus, or to what speaks its API: Thanos, Mimir, VictoriaMetrics. The only file that calls it.

An answer has a limit of time and size, and a redirect is not followed. Only numbers are read from it: NaN, infinity
and moments that were not asked for are left out.
"""

from __future__ import annotations

import json
import math
import time
from typing import Any

import requests
from urllib3.exceptions import HTTPError

from portal.core.connections.prometheus_server import PrometheusServer
from usage.telemetry.types import RangeAnswer, Series

SILENCE_S = 4.0  # to connect, and between two chunks of a response
# 10,000 pods with 8 GPUs: 80,000 series of about 250 bytes.
ANSWER_BYTES_MOST = 48 * 1024 * 1024
PIECE = 256 * 1024
PATH = "/api/v1/query_range"


class PrometheusUnreadable(Exception):
    """No usable answer. The text is a sentence for operators."""


class AnswerTooLarge(PrometheusUnreadable):
    """A shorter period may have a smaller answer."""


def query_range(
    server: PrometheusServer, query: str, *, start: float, end: float, step_s: int, until: float
) -> RangeAnswer:
    """`start`, `end`: Unix seconds, both included. `until`: a moment of time.monotonic() by which the answer is
    complete. Raises PrometheusUnreadable.
    """
    left = max(0.1, until - time.monotonic())
    form = {
        "query": query,
        "start": f"{start:.0f}",
        "end": f"{end:.0f}",
        "step": str(step_s),
        "timeout": f"{int(left * 1000)}ms",
    }
    try:
        with requests.post(
            server.url + PATH,
            data=form,
            # Without basic, requests would look for a password in ~/.netrc.
            auth=server.basic or _unchanged,
            headers={"Accept": "application/json", "Accept-Encoding": "identity", **server.headers},
            verify=server.ca_file or True,
            timeout=min(SILENCE_S, left),
            allow_redirects=False,
            stream=True,
        ) as answer:
            body = _body(answer, until)
            if answer.status_code != 200:
                raise PrometheusUnreadable(f"Prometheus responded with status {answer.status_code}{_error_of(body)}.")
    except (requests.RequestException, HTTPError, OSError) as error:
        raise PrometheusUnreadable(f"Prometheus does not respond ({_kind_of(error)}).") from error
    return _read(body, start=start, end=end)


def _unchanged(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _body(answer: requests.Response, until: float) -> bytes:
    """Reads the body in chunks, so that an endless response, or one of a byte per second, is aborted."""
    body = bytearray()
    while piece := answer.raw.read1(PIECE, decode_content=False):
        body += piece
        if len(body) > ANSWER_BYTES_MOST:
            raise AnswerTooLarge(f"Prometheus responded with more than {ANSWER_BYTES_MOST // 1024**2} MiB.")
        if time.monotonic() > until:
            raise PrometheusUnreadable("Prometheus responds too slowly.")
    return bytes(body)


def _error_of(body: bytes) -> str:
    """The kind of error, a fixed word of Prometheus; not its text, which repeats the query."""
    try:
        kind = json.loads(body)["errorType"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return ""
    return f" ({kind})" if isinstance(kind, str) and kind.replace("_", "").isalpha() and len(kind) <= 30 else ""


def _kind_of(error: Exception) -> str:
    return "too slow" if isinstance(error, requests.Timeout) else type(error).__name__


def _read(body: bytes, *, start: float, end: float) -> RangeAnswer:
    try:
        found = json.loads(body)
        data = found["data"]
        if found["status"] != "success" or data["resultType"] != "matrix":
            raise ValueError("no matrix")
        series = tuple(
            Series(_labels(one["metric"]), _points(one["values"], start=start, end=end)) for one in data["result"]
        )
        return RangeAnswer(series, is_partial=bool(found.get("warnings")))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        raise PrometheusUnreadable("The answer is not that of a Prometheus.") from error


def _labels(told: Any) -> dict[str, str]:
    return {str(name): str(value) for name, value in told.items()}


def _points(told: Any, *, start: float, end: float) -> tuple[tuple[float, float], ...]:
    read = ((float(moment), float(value)) for moment, value in told)
    return tuple((moment, value) for moment, value in read if math.isfinite(value) and start <= moment <= end)
