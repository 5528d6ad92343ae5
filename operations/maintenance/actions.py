"""Plan a maintenance, say that work by hand is done, cancel it, release its nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.events.actions import record
from catalog.classes.policy import may_edit
from cluster.models import Cluster, MirrorNode
from operations.maintenance import policy
from operations.maintenance.steps import Step
from operations.models import Maintenance, MaintenanceNode
from portal.core.due import touch
from portal.core.errors import get_or_refuse, refuse, refuse_if


@transaction.atomic
def plan_maintenance(
    cluster: Cluster,
    nodes: Collection[str],
    *,
    kind: str,
    reason: str,
    holds_from: datetime,
    starts_at: datetime,
    ends_at: datetime,
    mig_config: str = "",
    plugin_config: str = "",
    expected: Mapping[str, int] | None = None,
    stuck_minutes: int = 30,
    by: Actor,
    is_dry_run: bool = False,
) -> Maintenance:
    """The worker tells everybody who runs on the nodes, and does the rest at its time. A dry run refuses the same, and
    returns the maintenance unsaved.

    Raises Refused: not_allowed (403), bad_maintenance, bad_period (422), in_maintenance (409).
    """
    refuse_if(may_edit(by))
    reason, names = " ".join(reason.split()), sorted(set(nodes))
    refuse_if(policy.text_refusal(reason))
    refuse_if(policy.window_refusal(holds_from, starts_at, ends_at, now=timezone.now()))
    devices = dict(expected or {})
    labels = {"mig_config": mig_config, "plugin_config": plugin_config}
    refuse_if(policy.change_refusal(kind, **labels, expected=devices, stuck_minutes=stuck_minutes))
    known = MirrorNode.objects.filter(cluster_id=cluster.pk, name__in=names).values_list("name", flat=True)
    others = MaintenanceNode.objects.filter(cluster=cluster, name__in=names).exclude(step=Step.DONE)
    refuse_if(policy.nodes_refusal(names, known=set(known), busy=set(others.values_list("name", flat=True))))
    window = {"holds_from": holds_from, "starts_at": starts_at, "ends_at": ends_at}
    row = Maintenance(
        cluster=cluster,
        kind=kind,
        reason=reason,
        stuck_minutes=stuck_minutes,
        created_by=by.person,
        **window,
        **labels,
        expected=devices,
    )
    if is_dry_run:
        return row
    row.save()
    try:
        with transaction.atomic():
            MaintenanceNode.objects.bulk_create(
                MaintenanceNode(maintenance=row, cluster=cluster, name=name) for name in names
            )
    except IntegrityError as error:
        text = "Another maintenance of these nodes was planned a moment ago."
        raise refuse("in_maintenance", text, status=409) from error
    record(
        by,
        "maintenance.planned",
        row,
        after={"nodes": names, "kind": kind, "reason": reason, **window, **labels, "expected": devices},
    )
    touch(Maintenance, row.pk)
    return row


@transaction.atomic
def confirm_maintenance(pk: int, *, by: Actor) -> Maintenance:
    """Says that the work that the portal does not do is done; the worker then verifies and releases the nodes.

    Raises Refused: not_allowed (403), not_found (404), is_over (409).
    """
    row = _locked(pk, by)
    if not row.is_by_hand:
        raise refuse("bad_maintenance", "The portal itself sees when this change is done.", status=409)
    if _is_first(row, "confirmed_at"):
        record(by, "maintenance.confirmed", row)
    return row


@transaction.atomic
def cancel_maintenance(pk: int, *, by: Actor) -> Maintenance:
    """Nodes that were changed get their configuration of before; the worker verifies and releases them.

    Raises Refused as `confirm_maintenance`.
    """
    row = _locked(pk, by)
    if _is_first(row, "cancel_requested_at"):
        record(by, "maintenance.cancel_requested", row)
    return row


@transaction.atomic
def release_maintenance(pk: int, *, by: Actor) -> Maintenance:
    """Opens the nodes as they are, verified or not. Raises Refused as `confirm_maintenance`."""
    row = _locked(pk, by)
    if _is_first(row, "release_requested_at"):
        record(by, "maintenance.release_requested", row)
    return row


def _locked(pk: int, by: Actor) -> Maintenance:
    refuse_if(may_edit(by))
    row = get_or_refuse(Maintenance.objects.select_for_update(), pk=pk)
    if row.ended_at is not None:
        raise refuse("is_over", "This maintenance is over.", status=409)
    return row


def _is_first(row: Maintenance, column: str) -> bool:
    """Sets the time of the locked row and wakes the worker, unless that was asked before."""
    if getattr(row, column) is not None:
        return False
    Maintenance.objects.filter(pk=row.pk).update(**{column: Now()})
    touch(Maintenance, row.pk)
    return True
