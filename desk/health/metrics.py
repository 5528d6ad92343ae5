"""Prometheus metrics of classes, runs and nodes; portal/ops/metrics.py exports them with its own."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

from django.db import connection
from django.db.models import Count
from django.db.models.fields.json import KT
from django.utils import timezone
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from catalog.checks.nodes import CHANGING, STATE
from catalog.classes import queries as catalog
from catalog.classes.capacity import queries as capacity_queries
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorNode
from cluster.reads import queries as read_queries
from portal.core.errors import Refused
from tenants.models import Namespace
from workloads.models import Run, Workload

QUANTILES = (0.5, 0.9, 0.99)
WAITS_OVER = "1 day"
# The code of a run that ended because no node had CPU and GPUs that lie together (workloads/status/explain).
TOPOLOGY = "topology_refused"


def families() -> Iterator[Metric]:
    """Unknown values have no sample, never 0. Ten queries at most, whatever the number of classes, runs and nodes."""
    try:
        cluster = read_queries.current_cluster()
    except Refused:
        return
    classes = _classes(cluster)
    yield _free(cluster, classes)
    yield _waits(cluster)
    yield _topology(cluster, classes)
    yield _mig(cluster)


def _classes(cluster: Cluster) -> list[GpuClass]:
    found = GpuClass.objects.filter(cluster=cluster, life_cycle__in=catalog.OPEN_STATES)
    return list(found.exclude(interface=GpuClass.Interface.STORAGE).order_by("slug"))


def _free(cluster: Cluster, classes: Collection[GpuClass]) -> GaugeMetricFamily:
    text = "Free units on ready, schedulable nodes; no sample while the cluster data is outdated."
    family = GaugeMetricFamily("portal_class_free_units", text, labels=["class"])
    found = capacity_queries.capacities(cluster, classes)
    for one in classes:
        capacity = found[one.pk]
        if capacity.free is not None and capacity.is_current:
            family.add_metric([one.slug], capacity.free)
    return family


def _waits(cluster: Cluster) -> SummaryMetricFamily:
    """Without _sum and _count: over a moving window they would fall, which Prometheus interprets as a restart."""
    text = "Seconds from request to admission of runs admitted in the last 24 hours."
    family = SummaryMetricFamily("portal_queue_wait_seconds", text, labels=["class"])
    with connection.cursor() as cursor:
        cursor.execute(_WAITS, [list(QUANTILES), cluster.pk, WAITS_OVER])
        for slug, waits in cursor.fetchall():
            for quantile, seconds in zip(QUANTILES, waits, strict=True):
                family.add_sample(
                    "portal_queue_wait_seconds", {"class": slug, "quantile": str(quantile)}, float(seconds)
                )
    return family


_WAITS = f"""
SELECT run.spec ->> 'gpu_class',
       percentile_cont(%s::float[]) WITHIN GROUP (
           ORDER BY extract(epoch FROM greatest(run.admitted_at - run.requested_at, interval '0'))::float)
  FROM {Run._meta.db_table} run
  JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
  JOIN {Namespace._meta.db_table} namespace ON namespace.id = workload.namespace_id
 WHERE namespace.cluster_id = %s AND run.admitted_at > now() - %s::interval
 GROUP BY 1 ORDER BY 1"""


def _topology(cluster: Cluster, classes: Collection[GpuClass]) -> CounterMetricFamily:
    text = "Runs that failed because no node could allocate CPU and devices on the same NUMA node."
    family = CounterMetricFamily("portal_topology_rejections_total", text, labels=["class"])
    numbers = dict.fromkeys((one.slug for one in classes), 0)
    runs = Run.objects.filter(reason=TOPOLOGY, workload__namespace__cluster=cluster).order_by()
    found = runs.values(slug=KT("spec__gpu_class")).annotate(number=Count("pk"))
    numbers |= {row["slug"]: row["number"] for row in found}
    for slug, number in sorted(numbers.items()):
        family.add_metric([slug], number)
    return family


def _mig(cluster: Cluster) -> GaugeMetricFamily:
    text = "Seconds since the MIG manager of a node started to change its layout; NaN if unknown."
    family = GaugeMetricFamily("portal_mig_pending_seconds", text, labels=["node"])
    now = timezone.now()
    rows = MirrorNode.objects.annotate(state=KT(f"record__labels__{STATE}")).order_by("name")
    for row in rows.filter(cluster_id=cluster.pk, state__in=CHANGING):
        writer = read_queries.node_of(row).writers.get(STATE)
        at = writer.at if writer else None
        family.add_metric([row.name], math.nan if at is None else max(0.0, (now - at).total_seconds()))
    return family
