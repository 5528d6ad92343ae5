"""The two actions that set which teams may use a class, and the action by which a person accepts a class's terms."""

from __future__ import annotations

from django.db import transaction

from accounts.core.actor import Actor
from accounts.events.actions import record
from catalog.models import GpuClass
from portal.core.due import touch
from portal.core.errors import get_or_refuse, refuse, refuse_if
from portal.core.hints import page_hint
from tenants.core import policy
from tenants.models import ClassAccess, Namespace, Tenant, TermsAccepted


@transaction.atomic
def allow_team(class_id: int, *, tenant: str, by: Actor) -> ClassAccess:
    """Lets a team see, request and start on a class that is only for named teams. Repeating it changes nothing.

    Raises Refused: not_allowed (403), not_found (404).
    """
    refuse_if(policy.may_operate(by))
    gpu_class = get_or_refuse(GpuClass.objects.all(), pk=class_id)
    team = get_or_refuse(Tenant.objects.all(), slug=tenant)
    row, is_new = ClassAccess.objects.get_or_create(tenant=team, gpu_class=gpu_class)
    if is_new:
        record(by, "access.allowed", gpu_class, tenant=team.slug, after={"team": team.slug})
        _touch_namespaces(team)
    return row


@transaction.atomic
def disallow_team(class_id: int, *, tenant: str, by: Actor) -> None:
    """Ends access: no new requests and starts, no more borrowing; running workloads and granted units stay.

    Raises Refused: not_allowed (403), not_found (404), also for a team that has no access.
    """
    refuse_if(policy.may_operate(by))
    rows = ClassAccess.objects.select_for_update(of=("self",)).select_related("tenant", "gpu_class")
    row = get_or_refuse(rows, gpu_class_id=class_id, tenant__slug=tenant)
    record(by, "access.ended", row.gpu_class, tenant=tenant, before={"team": tenant})
    row.delete()
    _touch_namespaces(row.tenant)


def _touch_namespaces(tenant: Tenant) -> None:
    """Reconciles the namespaces, because the team's borrowing limit is part of its queue."""
    for namespace in tenant.namespaces.exclude(wanted=Namespace.Wanted.CLOSED):
        touch(Namespace, namespace.pk)
        page_hint(namespace.name)


@transaction.atomic
def accept_terms(class_id: int, version: int, *, by: Actor) -> None:
    """Recorded once per person, class and version; repeating it changes nothing and records no event.

    Raises Refused: not_found (404), terms_changed (409).
    """
    gpu_class = get_or_refuse(GpuClass.objects.all(), pk=class_id)
    if version != gpu_class.terms_version:
        raise refuse(
            "terms_changed",
            f"The terms of {gpu_class.name} are now version {gpu_class.terms_version}, not {version}. Read them again.",
            field="accept_terms",
            status=409,
        )
    _row, is_new = TermsAccepted.objects.get_or_create(user=by.person, gpu_class=gpu_class, version=version)
    if is_new:
        record(by, "terms.accepted", gpu_class, after={"version": version})
