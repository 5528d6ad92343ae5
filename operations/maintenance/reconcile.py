"""Takes the nodes of a maintenance through their steps. Every pass reads the nodes, writes what the step needs, and
goes on as far as it can (`steps.py`).

Nodes are read from the API server, not from the mirror: a decision about a node must not be older than the last write.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from accounts.events.actions import record
from cluster.client.errors import ClusterRefused, Conflict, NotFound
from cluster.client.kube import Kube
from operations.maintenance import node_patch
from operations.maintenance.affected import OnNodes, is_known_since, on_nodes
from operations.maintenance.layout_file import LayoutFile, with_layout
from operations.maintenance.notifications import (
    MAINTENANCE_RULE,
    REMINDER_BEFORE,
    tell_canceled,
    tell_end,
    tell_runs,
    tell_stuck,
)
from operations.maintenance.queries import moving_runs
from operations.maintenance.steps import NodeFacts, NodePlan, Step, Verdict, has_failed, next_step
from operations.models import Maintenance, MaintenanceNode, MaintenanceNotice
from portal.core.due import DONE, Deadline, Outcome
from workloads.runs.draining.actions import request_drain

# Nodes and pods are looked at again after this time while something is waited for; before the window more rarely.
SOON_S, LATER_S = 10.0, 60.0


@dataclass
class _Pass:
    """`layout`: the file with the layout of the plan, once it was read. `moving`: names of runs that were moved and are
    not in the queue again. None: to be read, also after a node of this pass has asked further runs to move.
    """

    kube: Kube
    deadline: Deadline
    row: Maintenance
    found: OnNodes
    now: datetime
    moving: list[str] | None = None
    layout: LayoutFile | None = None


def reconcile_maintenance(row: Maintenance, deadline: Deadline, *, kube: Kube) -> Outcome:
    if row.ended_at is not None:
        return DONE
    now = timezone.now()
    nodes = list(row.nodes.exclude(step=Step.DONE))
    found = on_nodes(row.cluster_id, [node.name for node in nodes])
    one = _Pass(kube, deadline, row, found, now)
    if now < row.starts_at and not (row.cancel_requested_at or row.release_requested_at):
        tell_runs(row, found, now=now)
    for node in nodes:
        _advance(one, node)
    if row.cancel_requested_at is not None:
        tell_canceled(row)
    if all(node.step == Step.DONE for node in nodes):
        _end(row)
        return DONE
    if all(node.step in (Step.PLANNED, Step.HELD) for node in nodes):
        moments = (row.holds_from, row.starts_at - REMINDER_BEFORE, row.starts_at)
        return Outcome(again_in_s=LATER_S, clock=min((at for at in moments if at > now), default=None))
    return Outcome(again_in_s=SOON_S)


def _advance(one: _Pass, node: MaintenanceNode) -> None:
    """Goes on until the node has to wait. A node that refuses or has gone does not stop the others."""
    for _step in Step:
        body: dict[str, Any] | None = None
        try:
            body = one.kube.get("Node", name=node.name).body
            verdict = _look(one, node, body)
        except NotFound:
            verdict = _gone(one, node)
        except Conflict:
            # Somebody else wrote first; the next pass reads it again.
            return
        except ClusterRefused as refused:
            verdict = Verdict(Step(node.step), f"The cluster refused: {refused.text}")
        if verdict.step == node.step and not verdict.goes_back:
            _wait(one, node, verdict, is_failed=body is not None and has_failed(verdict.step, _facts(one, node, body)))
            return
        _go_on(one, node, verdict, body)
        if node.step == Step.DONE:
            return


def _look(one: _Pass, node: MaintenanceNode, body: dict[str, Any]) -> Verdict:
    """Writes what the step needs, and decides on the node as it is then."""
    step = Step(node.step)
    labels = _labels(one.row, node)
    was = node.before.get("cordoned")
    waits = _layout_waits(one, node)
    written = {} if waits else labels
    patch = node_patch.patch_for(step, body, maintenance=one.row.pk, labels=written, was_cordoned=was)
    if patch is not None:
        one.deadline.check()
        body.update(one.kube.merge("Node", name=node.name, body=patch).body)
        if node.written_step == step:
            _record_undone(one.row, node, patch)
    if waits:
        return Verdict(step, waits)
    if node.written_step != step:
        _store(node, written_step=step)
    if step is Step.DRAINING:
        run_ids = [run.pk for run in one.found.runs.get(node.name, [])]
        _note_drained(one.row, run_ids)
        if request_drain(run_ids, reason=_why(one.row, node), by=MAINTENANCE_RULE):
            one.moving = None
    return next_step(step, _plan(one.row, node, labels), _facts(one, node, body), one.now)


def _layout_waits(one: _Pass, node: MaintenanceNode) -> str:
    """Why the node may not go on yet for its layout. Nobody is moved off for a layout that cannot be written, so it is
    added while the node is held; and looked for again before the node is told to have it.
    """
    step, row = Step(node.step), one.row
    if step not in (Step.HELD, Step.CHANGING) or node.written_step == Step.CHANGING:
        return ""
    if not row.mig_config or node.is_going_back or row.cancel_requested_at or row.release_requested_at:
        return ""
    if one.layout is None:
        one.layout = with_layout(one.kube, row.mig_config, one.deadline)
        if one.layout.is_added:
            with transaction.atomic():
                record(MAINTENANCE_RULE, "maintenance.layout_added", row, after={"layout": row.mig_config})
    return one.layout.problem if step is Step.HELD else one.layout.waits(one.now)


def _note_drained(row: Maintenance, run_ids: list[int]) -> None:
    """Stores whom the drain moves. People are told of it when the queue has taken the units back."""
    moved = MaintenanceNotice.Stage.MOVED
    rows = [MaintenanceNotice(maintenance=row, run_id=pk, stage=moved) for pk in run_ids]
    MaintenanceNotice.objects.bulk_create(rows, ignore_conflicts=True)


def _why(row: Maintenance, node: MaintenanceNode) -> str:
    return f"Maintenance of node {node.name}: {row.reason.rstrip('.')}."


def _labels(row: Maintenance, node: MaintenanceNode) -> dict[str, str | None]:
    wanted = dict(zip(node_patch.LABELS, (row.mig_config, row.plugin_config), strict=True))
    if node.is_going_back:
        return {name: node.before["labels"].get(name) for name, value in wanted.items() if value}
    return {name: value for name, value in wanted.items() if value}


def _plan(row: Maintenance, node: MaintenanceNode, labels: dict[str, str | None]) -> NodePlan:
    before = node.before.get("devices", {})
    return NodePlan(
        row.holds_from,
        row.starts_at,
        labels,
        devices=before if node.is_going_back or not row.expected else row.expected,
        is_going_back=node.is_going_back,
        is_confirmed=row.confirmed_at is not None,
        is_canceled=row.cancel_requested_at is not None,
        is_released=row.release_requested_at is not None,
    )


def _facts(one: _Pass, node: MaintenanceNode, body: dict[str, Any]) -> NodeFacts:
    is_known = node.step == Step.DRAINING and is_known_since(one.row.cluster_id, node.step_since)
    there = [f"{run.workload.tenant.slug}/{run.workload.name}" for run in one.found.runs.get(node.name, [])]
    moving = _moving(one) if node.step == Step.DRAINING else []
    return NodeFacts(
        ready=node_patch.is_ready(body),
        labels=node_patch.labels_of(body),
        devices=node_patch.devices_of(body),
        runs=tuple(there) if is_known else None,
        moving=tuple(name for name in moving if name not in there),
        others=tuple(one.found.others.get(node.name, ())),
    )


def _moving(one: _Pass) -> list[str]:
    if one.moving is None:
        one.moving = moving_runs(one.row)
    return one.moving


def _gone(one: _Pass, node: MaintenanceNode) -> Verdict:
    if one.row.release_requested_at or one.row.cancel_requested_at or node.step in (Step.PLANNED, Step.RELEASING):
        return Verdict(Step.DONE)
    return Verdict(Step(node.step), "The node is no longer in the cluster. Cancel the maintenance if it stays away.")


@transaction.atomic
def _go_on(one: _Pass, node: MaintenanceNode, verdict: Verdict, body: dict[str, Any] | None) -> None:
    before = dict(node.before)
    if verdict.step is Step.HELD and body is not None:
        before = node_patch.state_before(body)
    if verdict.step is Step.DRAINING and body is not None:
        before["cordoned"] = node_patch.is_cordoned(body)
    changed: dict[str, Any] = {"step": verdict.step, "before": before, "problem": "", "stuck_told_at": None}
    if verdict.goes_back:
        changed |= {"is_going_back": True, "written_step": ""}
    _store(node, **changed, step_since=Now())
    record(MAINTENANCE_RULE, "maintenance.step_begun", one.row, after={"node": node.name, "step": verdict.step})
    # What a step waits for is measured from its row; the mirror may be older.
    node.refresh_from_db(fields=["step_since"])


def _wait(one: _Pass, node: MaintenanceNode, verdict: Verdict, *, is_failed: bool) -> None:
    """Stores what the node waits for, and tells the planner once if that takes too long or cannot end."""
    if node.problem != verdict.problem:
        _store(node, problem=verdict.problem[:300])
    is_late = one.now >= node.step_since + timedelta(minutes=one.row.stuck_minutes)
    if verdict.problem and (is_late or is_failed) and node.stuck_told_at is None:
        _store(node, stuck_told_at=one.now)
        tell_stuck(one.row, node)


def _record_undone(row: Maintenance, node: MaintenanceNode, patch: dict[str, Any]) -> None:
    """Somebody changed what this step had written; it is written again."""
    fields = sorted({*patch.get("spec", {}), *patch["metadata"].get("labels", {})})
    with transaction.atomic():
        record(MAINTENANCE_RULE, "maintenance.node_restored", row, after={"node": node.name, "fields": fields})


@transaction.atomic
def _end(row: Maintenance) -> None:
    outcome = Maintenance.Outcome.DONE
    if row.release_requested_at is not None:
        outcome = Maintenance.Outcome.UNVERIFIED
    elif row.cancel_requested_at is not None:
        outcome = Maintenance.Outcome.CANCELED
    if Maintenance.objects.filter(pk=row.pk, ended_at=None).update(ended_at=Now(), outcome=outcome):
        row.outcome = outcome
        tell_end(row)


def _store(node: MaintenanceNode, **columns: Any) -> None:
    MaintenanceNode.objects.filter(pk=node.pk).update(**columns)
    for name, value in columns.items():
        if not hasattr(value, "resolve_expression"):
            setattr(node, name, value)
