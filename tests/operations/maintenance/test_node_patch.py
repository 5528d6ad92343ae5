"""What each step writes to a node. Pure."""

from __future__ import annotations

from typing import Any

import pytest

from operations.maintenance.node_patch import ANNOTATION, TAINT, devices_of, patch_for, state_before
from operations.maintenance.steps import MIG_CONFIG, MIG_STATE, PLUGIN_CONFIG, Step

THEIRS = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
OURS = {"key": TAINT, "value": "7", "effect": "NoSchedule"}
LABELS = {MIG_CONFIG: "all-1g.10gb"}


def node(*, taints: Any = (THEIRS,), cordoned: bool = False, noted: str = "", **labels: str) -> dict[str, Any]:
    named = {MIG_CONFIG: "all-disabled", MIG_STATE: "success"} | labels
    metadata = {"resourceVersion": "5", "labels": named, "annotations": {ANNOTATION: noted} if noted else {}}
    return {"metadata": metadata, "spec": {"taints": list(taints), **({"unschedulable": True} if cordoned else {})}}


def written(step: Step, body: dict[str, Any], was: bool | None = None, **labels: str | None) -> dict[str, Any] | None:
    return patch_for(step, body, maintenance=7, labels=labels or LABELS, was_cordoned=was)


HELD = {"taints": [THEIRS, OURS]}
NOTED = {"resourceVersion": "5", "annotations": {ANNOTATION: "7"}}


def test_nothing_is_written_before_the_hold() -> None:
    assert written(Step.PLANNED, node()) is None


def test_the_hold_adds_a_taint_and_leaves_the_others() -> None:
    assert written(Step.HELD, node()) == {"metadata": NOTED, "spec": HELD}
    assert written(Step.HELD, node(taints=(THEIRS, OURS), noted="7")) is None


def test_the_taint_of_an_older_maintenance_is_replaced() -> None:
    found = written(Step.HELD, node(taints=(THEIRS, {**OURS, "value": "6"}), noted="6"))
    assert found == {"metadata": NOTED, "spec": HELD}


def test_the_drain_cordons_and_so_does_every_step_until_the_release() -> None:
    held = node(taints=(THEIRS, OURS), noted="7")
    assert written(Step.DRAINING, held) == {"metadata": {"resourceVersion": "5"}, "spec": {"unschedulable": True}}
    open_by_hand = node(taints=(THEIRS, OURS), noted="7", **{MIG_CONFIG: "all-1g.10gb"})
    for step in (Step.CHANGING, Step.WAITING, Step.VERIFYING):
        assert written(step, open_by_hand) == {"metadata": {"resourceVersion": "5"}, "spec": {"unschedulable": True}}


def test_the_change_removes_the_state_of_the_last_layout() -> None:
    body = node(taints=(THEIRS, OURS), cordoned=True, noted="7")
    labels = {MIG_CONFIG: "all-1g.10gb", MIG_STATE: None}
    assert written(Step.CHANGING, body) == {"metadata": {"resourceVersion": "5", "labels": labels}}


def test_a_configuration_that_is_set_already_keeps_its_state() -> None:
    """The MIG manager does not react to it, so nothing would set the state again."""
    body = node(taints=(THEIRS, OURS), cordoned=True, noted="7", **{MIG_CONFIG: "all-1g.10gb"})
    assert written(Step.CHANGING, body) is None
    plugin = written(Step.CHANGING, body, **{PLUGIN_CONFIG: "shared"})
    assert plugin == {"metadata": {"resourceVersion": "5", "labels": {PLUGIN_CONFIG: "shared"}}}


def test_going_back_removes_a_label_that_was_not_there() -> None:
    body = node(taints=(THEIRS, OURS), cordoned=True, noted="7", **{PLUGIN_CONFIG: "shared"})
    found = written(Step.CHANGING, body, **{PLUGIN_CONFIG: None})
    assert found == {"metadata": {"resourceVersion": "5", "labels": {PLUGIN_CONFIG: None}}}


@pytest.mark.parametrize(
    ("was", "spec"),
    [
        (False, {"taints": [THEIRS], "unschedulable": None}),
        (True, {"taints": [THEIRS]}),
        (None, {"taints": [THEIRS]}),
    ],
)
def test_the_release_uncordons_only_what_it_cordoned(was: bool | None, spec: dict[str, Any]) -> None:
    body = node(taints=(THEIRS, OURS), cordoned=True, noted="7", **{MIG_CONFIG: "all-1g.10gb"})
    found = written(Step.RELEASING, body, was)
    assert found == {"metadata": {"resourceVersion": "5", "annotations": {ANNOTATION: None}}, "spec": spec}
    assert written(Step.RELEASING, node(cordoned=bool(was)), was) is None


def test_what_a_node_is_given_back() -> None:
    body = node() | {"status": {"allocatable": {"nvidia.com/gpu": "4", "nvidia.com/mig-1g.10gb": "0", "cpu": "64"}}}
    assert state_before(body) == {"labels": {MIG_CONFIG: "all-disabled"}, "devices": {"nvidia.com/gpu": 4}}
    assert devices_of({"status": {"allocatable": {"memory": "5Gi", "hugepages-2Mi": "0"}}}) == {}
