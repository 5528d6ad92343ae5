"""Grants that have ended, and what their namespaces still get of them."""

from __future__ import annotations

from datetime import timedelta

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.utils import timezone

from cluster.manifests import names
from devcluster.client.kube import Api
from tenants.models import Grant, Namespace
from tests.support.cluster.queued import WORKLOADS

COHORTS = "kueue.x-k8s.io/v1beta2/cohorts"


def end(grant: Grant, *, ago: timedelta = timedelta(0)) -> None:
    start = grant.period.lower - timedelta(days=3)
    Grant.objects.filter(pk=grant.pk).update(period=DateTimeTZRange(start, timezone.now() - ago))


def kept(admin: Api, namespace: Namespace) -> str | None:
    """Units that the namespace's own cohort protects from being reclaimed; None if it has no cohort."""
    found = admin.find(COHORTS, names.own_cohort(namespace.name))
    if found is None:
        return None
    [group] = found["spec"]["resourceGroups"]
    return str(group["flavors"][0]["resources"][0]["nominalQuota"])


def waits_for(admin: Api, namespace: Namespace, job: str) -> str:
    """Returns Kueue's message about a job without reserved quota."""
    for workload in admin.list(WORKLOADS, namespace=namespace.name):
        if workload["metadata"]["ownerReferences"][0]["name"] == job:
            conditions = workload.get("status", {}).get("conditions", [])
            return " ".join(one["message"] for one in conditions if one["status"] == "False")
    return ""
