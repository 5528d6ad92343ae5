"""Prometheus metrics of the mirror and of applied objects; portal/ops/metrics.py exports them with its own."""

from __future__ import annotations

import math
from collections import Counter as Counted
from collections.abc import Iterator

from django.db.models import Case, Count, DurationField, ExpressionWrapper, F, Value, When
from django.db.models.functions import Now
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily, Metric

from cluster.apply import queries as apply_queries
from cluster.apply import status
from cluster.models import AppliedObject, Certificate, Cluster, MirrorEpoch, MirrorObject
from desk.health.gpu_operator import DRIVER, IGNORED, NOT_READY, POLICY

# A higher number of orphans is reported as this number.
ORPHANS_COUNTED = 1000


def cluster_families() -> Iterator[Metric]:
    """Called at every scrape."""
    yield mirror_age()
    yield gpu_operator_ready()
    yield object_states()
    yield from certificates()


def mirror_age() -> GaugeMetricFamily:
    text = "Seconds since the last update from the API server; +Inf if never, or if the mirror was emptied."
    family = GaugeMetricFamily("portal_mirror_age_seconds", text, labels=["cluster"])
    age = ExpressionWrapper(Now() - F("heard_at"), output_field=DurationField())
    ages = dict(MirrorEpoch.objects.annotate(age=age).values_list("cluster_id", "age"))
    for pk, name in Cluster.objects.values_list("pk", "name"):
        family.add_metric([name], ages[pk].total_seconds() if pk in ages else math.inf)
    return family


def gpu_operator_ready() -> GaugeMetricFamily:
    """No sample for what has not reported its state, or is switched off."""
    text = "1 if the ClusterPolicy or NVIDIADriver of NVIDIA's GPU Operator is ready, else 0."
    family = GaugeMetricFamily("portal_gpu_operator_ready", text, labels=["cluster", "kind", "name"])
    rows = MirrorObject.objects.filter(kind__in=(POLICY, DRIVER), record__state__in=("ready", NOT_READY, IGNORED))
    names = dict(Cluster.objects.values_list("pk", "name"))
    for cluster_id, kind, name, state in rows.values_list("cluster_id", "kind", "name", "record__state"):
        if cluster_id in names:
            family.add_metric([names[cluster_id], kind, name], state == "ready")
    return family


def object_states() -> GaugeMetricFamily:
    """Each object has one state: an applied object that another client changed is drifted. Orphans have no row."""
    family = GaugeMetricFamily("portal_objects", "Objects of the portal in the cluster, by state.", labels=["state"])
    counts = Counted(dict.fromkeys([*status.STATUSES, "orphan"], 0))
    for cluster_id in Cluster.objects.values_list("pk", flat=True):
        absent = apply_queries.missing_objects(cluster_id)
        states = AppliedObject.objects.filter(cluster_id=cluster_id).exclude(pk__in=absent)
        counts["missing"] += len(absent)
        for result, difference, code, number in (
            states.annotate(kept=Case(When(code__in=status.STATUS_CODES, then="code"), default=Value("")))
            .values_list("result", "difference", "kept")
            .annotate(n=Count("pk"))
        ):
            counts[status.object_status(AppliedObject(result=result, difference=difference, code=code))] += number
        counts["orphan"] += len(apply_queries.orphaned_objects(cluster_id, limit=ORPHANS_COUNTED))
    for state, number in counts.items():
        family.add_metric([state], number)
    return family


def certificates() -> Iterator[GaugeMetricFamily]:
    left = "Seconds until a certificate or token expires; negative afterwards."
    expiry = GaugeMetricFamily("portal_certificate_expiry_seconds", left, labels=["certificate"])
    lifetime = GaugeMetricFamily(
        "portal_certificate_lifetime_seconds", "Seconds from its beginning to its expiry.", labels=["certificate"]
    )
    now = timezone.now()
    for one in Certificate.objects.order_by("name"):
        expiry.add_metric([one.name], (one.ends_at - now).total_seconds())
        lifetime.add_metric([one.name], (one.ends_at - one.begins_at).total_seconds())
    yield expiry
    yield lifetime
