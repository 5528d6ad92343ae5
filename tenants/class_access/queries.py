"""Which classes a person may see, and which a team may use. A class that a person may not see is answered like an
unknown one.
"""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.core.actor import Actor
from catalog.classes import queries as catalog
from catalog.models import GpuClass
from cluster.models import Cluster
from portal.core.errors import refuse
from tenants.members.models import in_teams_of
from tenants.models import ClassAccess

EVERYONE = GpuClass.Visibility.EVERYONE


def visible_classes(by: Actor, cluster: Cluster) -> QuerySet[GpuClass]:
    """Returns open classes by slug: all for staff; for others those for everyone and those that their teams may use."""
    return _visible(catalog.open_classes(cluster), by)


def known_classes(by: Actor, cluster: Cluster) -> QuerySet[GpuClass]:
    """Like `visible_classes`, including retired classes; for staff also drafts."""
    found = GpuClass.objects.filter(cluster=cluster).order_by("slug")
    if by.user is not None and not by.sees_all:
        found = found.exclude(life_cycle=GpuClass.LifeCycle.DRAFT)
    return _visible(found, by)


def class_to_filter(classes: QuerySet[GpuClass], slug: str) -> GpuClass:
    """Returns the class that a filter of a list names. `classes`: those that the caller may know. One query. Raises
    Refused: unknown_class (422).
    """
    found = classes.filter(slug=slug).select_related("cluster").first()
    if found is None:
        raise refuse("unknown_class", f"There is no class '{slug[:40]}'. See the catalog.", field="gpu_class")
    return found


def _visible(found: QuerySet[GpuClass], by: Actor) -> QuerySet[GpuClass]:
    if by.user is None or by.sees_all:
        return found
    theirs = ClassAccess.objects.filter(in_teams_of(by, "tenant__"), gpu_class=OuterRef("pk"))
    return found.filter(Q(visibility=EVERYONE) | Exists(theirs))


def usable_by(tenant_id: int) -> Q:
    """Filters GpuClass rows to those that this team may request and start on."""
    theirs = ClassAccess.objects.filter(gpu_class=OuterRef("pk"), tenant_id=tenant_id)
    return Q(visibility=EVERYONE) | Q(Exists(theirs))


def usable_by_sql(of: str = GpuClass._meta.db_table) -> str:
    """The same as SQL text. `of`: the alias of the class's table. The statement needs the value `tenant`."""
    return f"""({of}.visibility = '{EVERYONE}' OR EXISTS (
        SELECT FROM {ClassAccess._meta.db_table} access
         WHERE access.tenant_id = %(tenant)s AND access.gpu_class_id = {of}.id))"""


def may_use_class(tenant_id: int, gpu_class: GpuClass) -> bool:
    """No query for a class that is for everyone, otherwise one."""
    if gpu_class.visibility == EVERYONE:
        return True
    return ClassAccess.objects.filter(tenant_id=tenant_id, gpu_class=gpu_class).exists()
