"""The end of a closed team: its grants end, and its owners and managers are notified of each step once."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from accounts.events.queries import row_label
from accounts.models import Event
from catalog.models import Pool
from cluster.apply.applied_objects import forget_left_claims
from cluster.apply.queries import left_claims
from cluster.apply.types import LeftClaims
from portal.core.due import wake
from tenants.core import queries as core_queries
from tenants.core.notifications import page_url
from tenants.grants.queries import OVER_AT
from tenants.lifecycle import mails
from tenants.lifecycle.closing.schedule import is_volume_reminder_due
from tenants.members import queries
from tenants.models import Grant, Namespace, given_back_name

CLOSING = system_actor("closing")


def end_grants(namespace: Namespace, at: datetime) -> list[dict[str, Any]]:
    """Moves the end of all the team's grants, including graces, forward to `at`; deletes grants that start later.

    Running workloads are stopped, so no grace holds units any longer. Runs in the transaction of an action that records
    the return value: class, units and former end of each grant that would have continued.
    """
    ended = []
    alive = Grant.objects.alias(over_at=OVER_AT).filter(tenant_id=namespace.tenant_id, over_at__gt=at)
    for grant in alive.select_related("gpu_class").order_by("pk"):
        starts, ends = grant.period.lower, grant.period.upper
        same = Grant.objects.filter(pk=grant.pk)
        if ends <= at:
            same.update(grace=at - ends)
            continue
        ended.append({"class": grant.gpu_class.slug, "units": grant.units, "until": ends})
        if starts >= at:
            same.delete()
        else:
            same.update(period=DateTimeTZRange(starts, at), grace=timedelta(0))
    if ended:
        wake(Pool, Pool.objects.filter(cluster_id=namespace.cluster_id).values_list("pk", flat=True))
    return ended


@transaction.atomic
def finalize_closing(row: Namespace, at: datetime) -> bool:
    """Ends the grants; after this, closing cannot be undone. False: the closing was undone in the meantime."""
    namespace = core_queries.lock_namespace(row.pk)
    closes_at = namespace.closes_at
    if namespace.wanted != Namespace.Wanted.CLOSED or closes_at is None or closes_at > at:
        return False
    if ended := end_grants(namespace, closes_at):
        record(CLOSING, "namespace.closed", namespace, tenant=namespace.tenant.slug, after={"grants": ended})
    return True


@transaction.atomic
def remind_of_volume_deletion(row: Namespace, at: datetime, *, claims: int | None) -> None:
    """Reminds seven days before the volumes are deleted, unless closing was announced later. `claims`: their number
    with those of a cluster that was replaced; None: unknown.
    """
    if row.volumes_until is None or not is_volume_reminder_due(row, at):
        return
    namespace = core_queries.lock_namespace(row.pk)
    steps = Event.objects.filter(row=row_label(namespace), verb__in=["namespace.changed", "namespace.reminded"])
    if steps.order_by("-id").values_list("verb", flat=True).first() == "namespace.reminded":
        return
    left = left_claims(row.cluster_id, row.name)
    here = claims if left is None else left.here(claims)
    after = {"volumes_until": row.volumes_until, "volumes": here, **_left(left)}
    event = record(CLOSING, "namespace.reminded", namespace, tenant=namespace.tenant.slug, after=after)
    letter = mails.volume_deletion_reminder(
        namespace.tenant.name, volumes_until=row.volumes_until, claims=here, left=left
    )
    _notify(event, namespace, letter)


@transaction.atomic
def mark_deleted(row: Namespace, at: datetime) -> None:
    """Records the end. Volumes of a cluster that was replaced are named, and forgotten with the team."""
    namespace = core_queries.lock_namespace(row.pk)
    if namespace.wanted != Namespace.Wanted.CLOSED or namespace.gone_at is not None:
        return
    name = namespace.name if namespace.origin == Namespace.Origin.PORTAL else given_back_name(namespace)
    Namespace.objects.filter(pk=row.pk).update(gone_at=at, name=name)
    left = left_claims(row.cluster_id, namespace.name)
    event = record(CLOSING, "namespace.gone", namespace, tenant=namespace.tenant.slug, after=_left(left))
    forget_left_claims(row.cluster_id, namespace.name)
    _notify(event, namespace, mails.deletion_notice(namespace.tenant.name, left=left))


def _left(left: LeftClaims | None) -> dict[str, Any]:
    return {} if left is None else {"volumes_left": list(left.names), "clusters": list(left.clusters)}


def _notify(event: Event, namespace: Namespace, letter: Iterable[str]) -> None:
    subject, body = letter
    path = f"/teams/{namespace.tenant.slug}/members"
    deliver(event, queries.managers_of(namespace.tenant), subject=subject, body=f"{body}\n\n{page_url(path)}")
