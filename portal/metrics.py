"""What Prometheus reads: requests of this process, and figures that are rows (the same from every process).

The one to alert on is portal_overdue_seconds: how long work waits that should have been looked at.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter as Counted
from collections.abc import Callable, Iterable, Iterator

import structlog
from django.db import DatabaseError, InterfaceError
from django.db.models import Case, Count, DurationField, ExpressionWrapper, F, Value, When
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from cluster import status
from cluster.apply import REPAIRED
from cluster.models import AppliedObject, Cluster, MirrorEpoch
from portal import due

log = structlog.get_logger(__name__)
# More orphans than this are counted as so many.
ORPHANS_COUNTED = 1000
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
REQUESTS = Counter("portal_http_requests_total", "Requests answered.", ["method", "route", "status"])
DURATIONS = Histogram("portal_http_request_duration_seconds", "Time to the answer.", ["method", "route"])

Families = Callable[[], Iterable[Metric]]
_more: list[Families] = []


def also_show(families: Families) -> None:
    """Figures from rows of apps that this module does not know; called at every scrape, once for each start."""
    if families not in _more:
        _more.append(families)


class MetricsMiddleware:
    """Counts by route, never by path: a path has names in it, and there is no end of them."""

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
        up = GaugeMetricFamily("portal_database_up", "Whether the figures that are rows could be read.")
        try:
            yield from [_overdue(), _mirror_age(), _objects()]
            for families in _more:
                yield from list(families())
        except (DatabaseError, InterfaceError) as error:
            log.warning("metrics_without_rows", error=type(error).__name__)
            up.add_metric([], 0)
        else:
            up.add_metric([], 1)
        yield up


def _overdue() -> GaugeMetricFamily:
    family = GaugeMetricFamily("portal_overdue_seconds", "Age of the oldest due and free row.", labels=["table"])
    for table, seconds in due.overdue_s().items():
        family.add_metric([table], seconds)
    return family


def _mirror_age() -> GaugeMetricFamily:
    text = "Since the watcher last heard from the API server; +Inf: never, or the mirror was emptied."
    family = GaugeMetricFamily("portal_mirror_age_seconds", text, labels=["cluster"])
    age = ExpressionWrapper(Now() - F("heard_at"), output_field=DurationField())
    ages = dict(MirrorEpoch.objects.annotate(age=age).values_list("cluster_id", "age"))
    for pk, name in Cluster.objects.values_list("pk", "name"):
        family.add_metric([name], ages[pk].total_seconds() if pk in ages else math.inf)
    return family


def _objects() -> GaugeMetricFamily:
    """Each object has one state: an applied one that somebody changed counts as drifted. Orphans are no row's."""
    family = GaugeMetricFamily("portal_objects", "Objects that rows want in the cluster.", labels=["state"])
    counts = Counted(dict.fromkeys([*status.WORDS, "orphan"], 0))
    for cluster_id in Cluster.objects.values_list("pk", flat=True):
        absent = status.missing(cluster_id)
        states = AppliedObject.objects.filter(cluster_id=cluster_id).exclude(pk__in=absent)
        counts["missing"] += len(absent)
        for result, difference, code, number in (
            states.annotate(repaired=Case(When(code=REPAIRED, then="code"), default=Value("")))
            .values_list("result", "difference", "repaired")
            .annotate(n=Count("pk"))
        ):
            counts[status.word(AppliedObject(result=result, difference=difference, code=code))] += number
        counts["orphan"] += len(status.orphans(cluster_id, limit=ORPHANS_COUNTED))
    for state, number in counts.items():
        family.add_metric([state], number)
    return family


def exposition() -> bytes:
    """The text for Prometheus. With several processes behind one port, their counters are added up from files."""
    rows = CollectorRegistry()
    rows.register(RowsCollector())
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(REGISTRY) + generate_latest(rows)
    counted = CollectorRegistry()
    MultiProcessCollector(counted)
    return generate_latest(counted) + generate_latest(rows)
