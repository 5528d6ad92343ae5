"""Metrics for Prometheus: requests of this process, and figures from rows of Due tables. Apps register their own.

Alert on portal_overdue_seconds: how long the oldest due row has waited for a worker.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator

import structlog
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from portal.core import due

log = structlog.get_logger(__name__)
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
REQUESTS = Counter("portal_http_requests_total", "HTTP requests answered.", ["method", "route", "status"])
DURATIONS = Histogram("portal_http_request_duration_seconds", "Time to the response.", ["method", "route"])

ReadFamilies = Callable[[], Iterable[Metric]]
_more: list[ReadFamilies] = []


def register_collector(families: ReadFamilies) -> None:
    """Registers figures from rows of apps that this module does not know. `families` is called at every scrape; to
    register it again has no effect.
    """
    if families not in _more:
        _more.append(families)


class MetricsMiddleware:
    """Counts by route, never by path: a path contains names, so the number of label values would be unlimited."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        response = self.get_response(request)
        method = request.method if request.method in METHODS else "other"
        route = request.resolver_match.route if request.resolver_match else "none"
        REQUESTS.labels(method, route, response.status_code).inc()
        DURATIONS.labels(method, route).observe(time.perf_counter() - started)
        return response


class RowsCollector(Collector):
    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("portal_database_up", "Whether the metrics stored in the database could be read.")
        try:
            yield _overdue()
            for families in _more:
                yield from list(families())
        except (DatabaseError, InterfaceError) as error:
            log.warning("metrics_without_rows", error=type(error).__name__)
            up.add_metric([], 0)
        else:
            up.add_metric([], 1)
        yield up


def _overdue() -> GaugeMetricFamily:
    family = GaugeMetricFamily("portal_overdue_seconds", "Age of the oldest task past due.", labels=["table"])
    for table, seconds in due.overdue_s().items():
        family.add_metric([table], seconds)
    return family


def exposition() -> bytes:
    """The text for Prometheus. With several processes behind one port, their counters are summed from files."""
    rows = CollectorRegistry()
    rows.register(RowsCollector())
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(REGISTRY) + generate_latest(rows)
    counted = CollectorRegistry()
    MultiProcessCollector(counted)
    return generate_latest(counted) + generate_latest(rows)
