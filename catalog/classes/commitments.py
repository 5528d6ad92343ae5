"""Who still has something of a class. Grants and runs belong to apps above this one; Django's relations lead there."""

from __future__ import annotations

from django.db.models import Count, Max, Sum
from django.db.models.functions import Now, Upper

from accounts.models import User
from catalog.classes.policy import ClassCommitments
from catalog.models import GpuClass


def commitments_of(gpu_class: GpuClass) -> ClassCommitments:
    """Promises that are not over, those that begin later included, and runs that have not ended. Two queries."""
    found = gpu_class.grants.filter(period__endswith__gt=Now()).aggregate(
        teams=Count("tenant", distinct=True), units=Sum("units"), until=Max(Upper("period"))
    )
    # A workload may be declared with another class while a run of it goes on with this one.
    alive = {"workloads__runs__ended_at": None, "workloads__runs__spec__gpu_class": gpu_class.slug}
    runs = gpu_class.cluster.namespaces.filter(**alive).aggregate(count=Count("workloads__runs"))
    unit = "GiB" if gpu_class.is_storage else "unit"
    return ClassCommitments(found["teams"], found["units"] or 0, found["until"], runs["count"], unit)


def holder_owners(gpu_class: GpuClass) -> list[User]:
    """Owners of the teams that hold units of it, or will. One query."""
    held = gpu_class.grants.filter(period__endswith__gt=Now()).values("tenant")
    found = User.objects.filter(memberships__role="owner", memberships__tenant__in=held, is_active=True)
    return list(found.distinct().order_by("pk"))
