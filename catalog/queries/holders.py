"""Who still has something of a class. Grants and runs belong to apps above this one; Django's relations lead there."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Count, Max, Sum
from django.db.models.functions import Now, Upper
from django.utils import timezone

from accounts.models import User
from catalog import life_cycle
from catalog.models import GpuClass
from catalog.policy import Claims


def claims(gpu_class: GpuClass) -> Claims:
    """Promises that are not over, those that begin later included, and runs that have not ended. Two queries."""
    found = gpu_class.grants.filter(period__endswith__gt=Now()).aggregate(
        teams=Count("tenant", distinct=True), units=Sum("units"), until=Max(Upper("period"))
    )
    # A workload may be declared with another class while a run of it goes on with this one.
    alive = {"workloads__runs__ended_at": None, "workloads__runs__spec__gpu_class": gpu_class.slug}
    runs = gpu_class.cluster.namespaces.filter(**alive).aggregate(count=Count("workloads__runs"))
    unit = "GiB" if gpu_class.is_storage else "unit"
    return Claims(found["teams"], found["units"] or 0, found["until"], runs["count"], unit)


def owners(gpu_class: GpuClass) -> list[User]:
    """Owners of the teams that hold units of it, or will. One query."""
    held = gpu_class.grants.filter(period__endswith__gt=Now()).values("tenant")
    found = User.objects.filter(memberships__role="owner", memberships__tenant__in=held, is_active=True)
    return list(found.distinct().order_by("pk"))


def told(gpu_class: GpuClass, known: Mapping[int, str]) -> str:
    """Its hold and its end (see `retirement`), in sentences; "" of a class about which there is nothing to say."""
    return f"{life_cycle.hold(gpu_class, now=timezone.now())} {retirement(gpu_class, known)}".strip()


def successor_of(gpu_class: GpuClass) -> str:
    """Its name; "" where there is none, or none that everybody may know of."""
    found = gpu_class.successor
    return found.name if found is not None and found.visibility == GpuClass.Visibility.EVERYONE else ""


def retirement(gpu_class: GpuClass, known: Mapping[int, str] | None = None) -> str:
    """What holders are told; "" of a class that stays. `known`: by id the names of the classes that the reader may know
    of. None: it is for many readers, so it names only a successor that everybody may know of, at the cost of a query.
    """
    return life_cycle.retirement(
        name=gpu_class.name,
        life_cycle=gpu_class.life_cycle,
        successor=successor_of(gpu_class) if known is None else known.get(gpu_class.successor_id or 0, ""),
        message=gpu_class.retiring_message,
        runs_until=gpu_class.runs_until,
        is_storage=gpu_class.is_storage,
    )
