"""Requests that wait for an approver."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Namespace, Plan, QuotaLine, QuotaRequest, Tenant
from tests.support.rows import make
from tests.support.rows.usage import looked, ran, used

DAY = timedelta(days=1)


ACCEPTED = {
    "kind": "ClusterQueue", "namespace": "", "name": "q", "change": "change", "difference": [], "result": "accepted",
    "code": "", "text": "",
}  # fmt: skip


def as_(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def text(response: Any) -> str:
    return " ".join(response.text.split())


def team(cluster: Cluster, slug: str) -> Tenant:
    of_test = cluster.cohort.removeprefix("gpu-portal-")
    return make.tenant(cluster, slug=slug, namespace=f"{slug}-{of_test}")


def waits(
    tenant: Tenant,
    gpu_class: GpuClass,
    by: User,
    *,
    units: int,
    since: datetime | None = None,
    days: int = 30,
    kind: str = "base",
    plan: list[dict[str, Any]] | None = None,
) -> QuotaRequest:
    """Makes a pending request with a plan of these objects; by default with an object that the cluster accepts."""
    start = since or timezone.now()
    request = QuotaRequest.objects.create(tenant=tenant, filed_by=by, justification="Training.")
    QuotaLine.objects.create(
        request=request, tenant=tenant, gpu_class=gpu_class, kind=kind, asked_units=units, asked_from=start,
        asked_until=start + days * DAY,
    )  # fmt: skip
    objects = [ACCEPTED] if plan is None else plan
    Plan.objects.create(
        request=request, observed_generation=1, due_at=None, made_at=timezone.now(), objects_planned=objects
    )
    return request


def in_use(namespace: Namespace, gpu_class: GpuClass, by: User, *, units: int) -> None:
    """The team uses all its units all the time, and a run had to wait."""
    looked(gpu_class)
    used(namespace, gpu_class, peak=units, total=units * 60 * 720)
    ran(namespace, gpu_class, by, units=units, waited=timedelta(minutes=9))


def many(cluster: Cluster, gpu_class: GpuClass, by: User, number: int, *, first: int = 0) -> None:
    """Makes `number` teams, each with a grant, a pending request and use."""
    for index in range(first, first + number):
        holder = team(cluster, f"t{index}")
        make.grant(holder, gpu_class, units=1)
        waits(holder, gpu_class, by, units=2)
        used(holder.namespaces.get(), gpu_class, peak=1, total=60)
