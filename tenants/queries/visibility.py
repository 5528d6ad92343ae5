"""Which classes a person may know of, and a team may use. Who may not is told what an unknown class is told."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.actor import Actor
from catalog import queries as catalog
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import ClassAccess

EVERYONE = GpuClass.Visibility.EVERYONE


def visible_classes(by: Actor, cluster: Cluster) -> QuerySet[GpuClass]:
    """Open classes by slug: for staff all; for others those for everyone, and those that a team of theirs may use."""
    found = catalog.open_classes(cluster)
    if by.user is None or by.sees_all:
        return found
    theirs = ClassAccess.objects.filter(gpu_class=OuterRef("pk"), tenant__memberships__user=by.user)
    return found.filter(Q(visibility=EVERYONE) | Exists(theirs))


def usable_by(tenant_id: int) -> Q:
    """Of GpuClass rows: those that this team may ask for and start on."""
    theirs = ClassAccess.objects.filter(gpu_class=OuterRef("pk"), tenant_id=tenant_id)
    return Q(visibility=EVERYONE) | Q(Exists(theirs))


def may_use(tenant_id: int, gpu_class: GpuClass) -> bool:
    """No query for a class that is for everyone, else one."""
    if gpu_class.visibility == EVERYONE:
        return True
    return ClassAccess.objects.filter(tenant_id=tenant_id, gpu_class=gpu_class).exists()
