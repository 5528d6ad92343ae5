"""Takes the nodes of a maintenance through their steps. Every pass reads the nodes, writes what the step needs, and
goes on as far as it can (`steps.py`).

Nodes are read from the API server, not from the mirror: a decision about a node must not be older than the last write.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from cluster.client.errors import ClusterRefused, Conflict, NotFound
from cluster.client.kube import Kube
from operations.maintenance import node_patch, recording
from operations.maintenance.affected import OnNodes, is_known_since, on_nodes
from operations.maintenance.choices.leaving import leave_node
from operations.maintenance.layout_file import LayoutFile, with_layout
from operations.maintenance.notifications import REMINDER_BEFORE, tell_canceled, tell_runs
from operations.maintenance.queries import moving_runs
from operations.maintenance.steps import (
    NodeFacts,
    NodePlan,
    Step,
    Verdict,
    has_failed,
    next_step,
    remedy,
    waits_since,
)
from operations.models import Maintenance, MaintenanceNode
from portal.core.due import DONE, Deadline, Outcome, TryLater

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
    if now < row.starts_at and _is_wanted(row):
        tell_runs(row, found, now=now)
    for node in nodes:
        _advance(one, node)
    if row.cancel_requested_at is not None:
        tell_canceled(row)
    if all(node.step == Step.DONE for node in nodes):
        recording.record_end(row)
        return DONE
    if all(node.step in (Step.PLANNED, Step.HELD) for node in nodes):
        moments = (row.holds_from, row.starts_at - REMINDER_BEFORE, row.starts_at)
        return Outcome(again_in_s=LATER_S, clock=min((at for at in moments if at > now), default=None))
    return Outcome(again_in_s=SOON_S)


def _advance(one: _Pass, node: MaintenanceNode) -> None:
    """Goes on until the node has to wait. A node that refuses or has gone does not stop the others."""
    for _step in Step:
        body: dict[str, Any] | None = None
        facts: NodeFacts | None = None
        try:
            body = one.kube.get("Node", name=node.name).body
            waits = _layout_waits(one, node)
            facts = _look(one, node, body, is_waiting=bool(waits))
            step = Step(node.step)
            verdict = Verdict(step, waits) if waits else next_step(step, _plan(one.row, node), facts, one.now)
        except NotFound:
            verdict = _gone(one, node)
        except Conflict:
            # Somebody else wrote first; the next pass reads it again.
            return
        except ClusterRefused as refused:
            verdict = Verdict(Step(node.step), f"The cluster refused: {refused.text}")
        if verdict.step == node.step and not verdict.goes_back:
            _wait(one, node, verdict, facts)
            return
        _go_on(one, node, verdict, body)
        if node.step == Step.DONE:
            return


def _look(one: _Pass, node: MaintenanceNode, body: dict[str, Any], *, is_waiting: bool) -> NodeFacts:
    """Writes what the step needs, without the labels of a layout that it waits for, and returns what the node is like
    then.
    """
    step = Step(node.step)
    labels, was = _labels(one.row, node), node.before.get("cordoned")
    written = {} if is_waiting else labels
    patch = node_patch.patch_for(step, body, maintenance=one.row.pk, labels=written, was_cordoned=was)
    if patch is not None:
        one.deadline.check()
        # It ends without the worker if another cluster is confirmed: this node may be another machine.
        if not Maintenance.objects.filter(pk=one.row.pk, ended_at=None).exists():
            raise TryLater("maintenance", "The maintenance was ended in the meantime.")
        body.update(one.kube.merge("Node", name=node.name, body=patch).body)
        if node.written_step == step:
            recording.record_undone(one.row, node, patch)
    if is_waiting:
        return _facts(one, node, body)
    recording.note_written(node)
    if step is Step.DRAINING:
        run_ids = [run.pk for run in one.found.runs.get(node.name, [])]
        if _is_wanted(one.row) and leave_node(one.row, run_ids, why=_why(one.row, node)):
            one.moving = None
    return _facts(one, node, body)


def _layout_waits(one: _Pass, node: MaintenanceNode) -> str:
    """Why the node may not go on yet for its layout. Nobody is moved off for a layout that cannot be written, so it is
    added while the node is held; and looked for again before the node is told to have it.
    """
    step, row = Step(node.step), one.row
    if step not in (Step.HELD, Step.CHANGING) or node.written_step == Step.CHANGING:
        return ""
    if not row.mig_config or node.is_going_back or not _is_wanted(row):
        return ""
    if one.layout is None:
        one.layout = with_layout(one.kube, row.mig_config, one.deadline)
        if one.layout.is_added:
            recording.record_layout(row)
    return one.layout.problem if step is Step.HELD else one.layout.waits(one.now)


def _is_wanted(row: Maintenance) -> bool:
    """A run is neither moved nor stopped for a maintenance that is to end."""
    return row.cancel_requested_at is None and row.release_requested_at is None


def _why(row: Maintenance, node: MaintenanceNode) -> str:
    return f"Maintenance of node {node.name}: {row.reason.rstrip('.')}."


def _labels(row: Maintenance, node: MaintenanceNode) -> dict[str, str | None]:
    wanted = dict(zip(node_patch.LABELS, (row.mig_config, row.plugin_config), strict=True))
    if node.is_going_back:
        return {name: node.before["labels"].get(name) for name, value in wanted.items() if value}
    return {name: value for name, value in wanted.items() if value}


def _plan(row: Maintenance, node: MaintenanceNode) -> NodePlan:
    before = node.before.get("devices", {})
    return NodePlan(
        row.holds_from,
        row.starts_at,
        _labels(row, node),
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
        unready=node_patch.unready_of(body),
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


def _go_on(one: _Pass, node: MaintenanceNode, verdict: Verdict, body: dict[str, Any] | None) -> None:
    before = dict(node.before)
    if verdict.step is Step.HELD and body is not None:
        before = node_patch.state_before(body)
    if verdict.step is Step.DRAINING and body is not None:
        before["cordoned"] = node_patch.is_cordoned(body)
    recording.begin_step(one.row, node, verdict.step, before, goes_back=verdict.goes_back)


def _wait(one: _Pass, node: MaintenanceNode, verdict: Verdict, facts: NodeFacts | None) -> None:
    """Stores what the node waits for; it is stuck if that takes too long or cannot end."""
    limit = waits_since(verdict.step, facts, node.step_since) + timedelta(minutes=one.row.stuck_minutes)
    has_ended = facts is not None and has_failed(verdict.step, facts)
    recording.note_wait(
        one.row,
        node,
        verdict.problem,
        is_stuck=bool(verdict.problem) and (one.now >= limit or has_ended),
        remedy=remedy(verdict.step, facts),
        now=one.now,
    )
