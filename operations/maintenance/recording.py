"""What the worker writes to the rows of a maintenance and its nodes: a step that has begun, what a node waits for, the
end.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from accounts.core.actor import Actor
from accounts.events.actions import record
from operations.maintenance.notifications import MAINTENANCE_RULE, tell_end, tell_stuck
from operations.maintenance.steps import Step
from operations.models import Maintenance, MaintenanceNode
from portal.core.due import TryLater


@transaction.atomic
def begin_step(row: Maintenance, node: MaintenanceNode, step: Step, before: dict[str, Any], *, goes_back: bool) -> None:
    changed: dict[str, Any] = {"step": step, "before": before, "problem": "", "stuck_told_at": None}
    if goes_back:
        changed |= {"is_going_back": True, "written_step": ""}
    _store(node, **changed, step_since=Now())
    record(MAINTENANCE_RULE, "maintenance.step_begun", row, after={"node": node.name, "step": step})
    # What a step waits for is measured from its row; the mirror may be older.
    node.refresh_from_db(fields=["step_since"])


def note_written(node: MaintenanceNode) -> None:
    """The node is what its step needs."""
    if node.written_step != node.step:
        _store(node, written_step=node.step)


def note_wait(
    row: Maintenance, node: MaintenanceNode, problem: str, *, is_stuck: bool, remedy: str, now: datetime
) -> None:
    """`problem`: what the node waits for. The planner is told once that it is stuck. A node that waits only for time
    again, because it responds, is not stuck any more.
    """
    if node.problem != problem:
        _store(node, problem=problem[:300])
    if is_stuck and node.stuck_told_at is None:
        _store(node, stuck_told_at=now)
        tell_stuck(row, node, remedy)
    elif not problem and node.stuck_told_at is not None:
        _store(node, stuck_told_at=None)


@transaction.atomic
def record_layout(row: Maintenance) -> None:
    record(MAINTENANCE_RULE, "maintenance.layout_added", row, after={"layout": row.mig_config})


@transaction.atomic
def record_undone(row: Maintenance, node: MaintenanceNode, patch: dict[str, Any]) -> None:
    """Somebody changed what this step had written; it is written again."""
    fields = sorted({*patch.get("spec", {}), *patch["metadata"].get("labels", {})})
    record(MAINTENANCE_RULE, "maintenance.node_restored", row, after={"node": node.name, "fields": fields})


@transaction.atomic
def record_end(row: Maintenance) -> None:
    outcome = Maintenance.Outcome.DONE
    if row.release_requested_at is not None:
        outcome = Maintenance.Outcome.UNVERIFIED
    elif row.cancel_requested_at is not None:
        outcome = Maintenance.Outcome.CANCELED
    if Maintenance.objects.filter(pk=row.pk, ended_at=None).update(ended_at=Now(), outcome=outcome):
        row.outcome = outcome
        tell_end(row)


@transaction.atomic
def end_of_previous_cluster(cluster_id: int, *, by: Actor) -> None:
    """Its nodes are not in the cluster any more, and those of the same name are other machines: neither a step nor the
    way back is taken there.
    """
    text = (
        "The cluster was replaced by another one. Nodes there are not changed, also not those of the same name: plan "
        "the maintenance again if it is still needed."
    )
    for row in Maintenance.objects.select_for_update(of=("self",)).filter(cluster_id=cluster_id, ended_at=None):
        row.nodes.exclude(step=Step.DONE).update(step=Step.DONE, step_since=Now(), problem="", stuck_told_at=None)
        row.outcome = Maintenance.Outcome.CANCELED
        Maintenance.objects.filter(pk=row.pk).update(ended_at=Now(), outcome=row.outcome)
        tell_end(row, text, code="cluster_replaced", by=by)


def _store(node: MaintenanceNode, **columns: Any) -> None:
    # Ended behind this pass, by a confirmed move: a step that is left open would block the name of the node.
    if not MaintenanceNode.objects.filter(pk=node.pk, maintenance__ended_at=None).update(**columns):
        raise TryLater("maintenance", "The maintenance was ended in the meantime.")
    for name, value in columns.items():
        if not hasattr(value, "resolve_expression"):
            setattr(node, name, value)
