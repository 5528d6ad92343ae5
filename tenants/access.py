"""Classes for named teams: the two verbs that say who may use them. Visibility itself is the class's own field."""

from __future__ import annotations

from django.db import transaction

from accounts.actions import record
from accounts.actor import Actor
from catalog.models import GpuClass
from portal.due import touch
from portal.errors import get_or_refuse, refuse_if
from portal.hints import page_hint
from tenants import policy
from tenants.models import ClassAccess, Namespace, Tenant


@transaction.atomic
def allow_team(class_id: int, *, tenant: str, by: Actor) -> ClassAccess:
    """A team may see, ask for and start on a class that is for named teams. Nothing changes for one that may already.

    Raises Refused: not_allowed (403), not_found (404).
    """
    refuse_if(policy.may_operate(by))
    gpu_class = get_or_refuse(GpuClass.objects.all(), pk=class_id)
    team = get_or_refuse(Tenant.objects.all(), slug=tenant)
    row, is_new = ClassAccess.objects.get_or_create(tenant=team, gpu_class=gpu_class)
    if is_new:
        record(by, "access.allowed", gpu_class, tenant=team.slug, after={"team": team.slug})
        _queues_change(team)
    return row


@transaction.atomic
def disallow_team(class_id: int, *, tenant: str, by: Actor) -> None:
    """No new requests and starts, nothing more to borrow; what runs and what was granted stays.

    Raises Refused: not_allowed (403), not_found (404), also for a team that has no access.
    """
    refuse_if(policy.may_operate(by))
    rows = ClassAccess.objects.select_for_update(of=("self",)).select_related("tenant", "gpu_class")
    row = get_or_refuse(rows, gpu_class_id=class_id, tenant__slug=tenant)
    record(by, "access.ended", row.gpu_class, tenant=tenant, before={"team": tenant})
    row.delete()
    _queues_change(row.tenant)


def _queues_change(tenant: Tenant) -> None:
    """What the tenant may borrow is part of its queue."""
    for namespace in tenant.namespaces.exclude(wanted=Namespace.Wanted.CLOSED):
        touch(Namespace, namespace.pk)
        page_hint(namespace.name)
