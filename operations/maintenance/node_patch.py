"""What maintenance writes to a node: a taint, the cordon, labels, and an annotation that says whose they are. Pure.

The taint keeps everything off the node even if somebody uncordons it. No pod of a team may tolerate it: the fence for
pods allows only the taints of classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster.manifests.node_removal.cordons import MAINTENANCE_TAINT
from cluster.reads.observed import parse_time
from operations.maintenance.steps import CHANGED, DRAINED, MIG_CONFIG, MIG_STATE, PLUGIN_CONFIG, Step, Unready

TAINT = ANNOTATION = MAINTENANCE_TAINT
# The labels that a change may set.
LABELS = (MIG_CONFIG, PLUGIN_CONFIG)
Body = Mapping[str, Any]


def labels_of(body: Body) -> dict[str, str]:
    return body["metadata"].get("labels") or {}


def is_cordoned(body: Body) -> bool:
    return bool(body["spec"].get("unschedulable"))


def state_before(body: Body) -> dict[str, Any]:
    """What a node is given back, and what it must offer again."""
    labels = labels_of(body)
    return {
        "labels": {name: labels[name] for name in LABELS if name in labels},
        "devices": devices_of(body),
    }


def devices_of(body: Body) -> dict[str, int]:
    """Allocatable extended resources, without those of 0: a plugin that has restarted may name none of them."""
    offered = (body.get("status") or {}).get("allocatable") or {}
    found = {name: int(number) for name, number in offered.items() if "/" in name and str(number).isdigit()}
    return {name: number for name, number in found.items() if number and not name.startswith("kubernetes.io/")}


def unready_of(body: Body) -> Unready | None:
    conditions = (body.get("status") or {}).get("conditions") or []
    ready: Body = next((one for one in conditions if one["type"] == "Ready"), {})
    if ready.get("status") == "True":
        return None
    return Unready(parse_time(ready.get("lastTransitionTime")), is_silent=ready.get("status") == "Unknown")


def patch_for(
    step: Step, body: Body, *, maintenance: int, labels: Mapping[str, str | None], was_cordoned: bool | None
) -> dict[str, Any] | None:
    """The merge patch that makes the node what `step` needs; None if it is. Holds only for this version of the node.
    `was_cordoned`: before this maintenance cordoned it; None: it has not.

    The MIG manager leaves the state of the last layout in place until it begins, so the state goes with the change.
    """
    if step is Step.PLANNED:
        return None
    metadata, spec = body["metadata"], body["spec"]
    is_held = step not in (Step.RELEASING, Step.DONE)
    taints = list(spec.get("taints") or [])
    kept = [one for one in taints if one["key"] != TAINT]
    value = str(maintenance)
    wanted = [*kept, {"key": TAINT, "value": value, "effect": "NoSchedule"}] if is_held else kept
    has_taint = any(one["key"] == TAINT and one.get("value") == value for one in taints)
    changed: dict[str, Any] = {"metadata": {}, "spec": {}}
    if has_taint != is_held or (not is_held and len(kept) != len(taints)):
        changed["spec"]["taints"] = wanted
    cordon = True if step in DRAINED else is_cordoned(body) if was_cordoned is None else was_cordoned
    if cordon != is_cordoned(body):
        changed["spec"]["unschedulable"] = True if cordon else None
    noted = (metadata.get("annotations") or {}).get(ANNOTATION)
    if noted != (value if is_held else None):
        changed["metadata"]["annotations"] = {ANNOTATION: value if is_held else None}
    if step in CHANGED and (new := _label_changes(labels_of(body), labels)):
        changed["metadata"]["labels"] = new
    if not changed["metadata"] and not changed["spec"]:
        return None
    changed["metadata"]["resourceVersion"] = metadata["resourceVersion"]
    return {part: value for part, value in changed.items() if value}


def _label_changes(now: Mapping[str, str], wanted: Mapping[str, str | None]) -> dict[str, str | None]:
    new = {name: value for name, value in wanted.items() if now.get(name) != value}
    return new | ({MIG_STATE: None} if new.get(MIG_CONFIG) is not None else {})
