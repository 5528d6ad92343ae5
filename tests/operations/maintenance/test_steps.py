"""Which step follows which, and what is waited for. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from operations.maintenance.steps import (
    MIG_CONFIG,
    MIG_STATE,
    NodeFacts,
    NodePlan,
    Step,
    Unready,
    has_failed,
    next_step,
    remedy,
    waits_since,
)

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
SLICE = "nvidia.com/mig-1g.10gb"
PLAN = NodePlan(NOW, NOW, {MIG_CONFIG: "all-1g.10gb"}, {SLICE: 7})
BY_HAND = replace(PLAN, labels={}, devices={"nvidia.com/gpu": 4})
UNWELL, SILENT = Unready(None, is_silent=False), Unready(NOW - HOUR, is_silent=True)
SAID = "The node has not responded since 1 Dec 2026, 08:00."
FACTS = NodeFacts(None, {MIG_STATE: "success"}, {SLICE: 7})


@pytest.mark.parametrize(
    ("step", "plan", "facts", "then", "problem"),
    [
        (Step.PLANNED, replace(PLAN, holds_from=NOW + HOUR, starts_at=NOW + HOUR), FACTS, Step.PLANNED, ""),
        (Step.PLANNED, PLAN, FACTS, Step.HELD, ""),
        (Step.HELD, replace(PLAN, starts_at=NOW + HOUR), FACTS, Step.HELD, ""),
        (Step.HELD, PLAN, FACTS, Step.DRAINING, ""),
        (Step.DRAINING, PLAN, FACTS, Step.CHANGING, ""),
        (Step.DRAINING, PLAN, replace(FACTS, runs=("a/one",)), Step.DRAINING, "1 workload (a/one) is still"),
        (Step.DRAINING, PLAN, replace(FACTS, runs=tuple("abcde")), Step.DRAINING, "(a, b, c and 2 more) are"),
        (Step.DRAINING, PLAN, replace(FACTS, others=("x/y",)), Step.DRAINING, "1 pod (x/y) is still on"),
        (Step.DRAINING, PLAN, replace(FACTS, moving=("a/one",)), Step.DRAINING, "1 workload (a/one) is being queued"),
        (Step.DRAINING, PLAN, replace(FACTS, runs=None), Step.DRAINING, "It is not known what runs"),
        (Step.CHANGING, PLAN, FACTS, Step.WAITING, ""),
        (Step.CHANGING, BY_HAND, FACTS, Step.CHANGING, "an operator says"),
        (Step.CHANGING, replace(BY_HAND, is_confirmed=True), FACTS, Step.WAITING, ""),
        (Step.WAITING, PLAN, FACTS, Step.VERIFYING, ""),
        (Step.WAITING, PLAN, replace(FACTS, labels={}), Step.WAITING, "has not responded"),
        (Step.WAITING, PLAN, replace(FACTS, labels={MIG_STATE: "rebooting"}), Step.WAITING, "reports rebooting"),
        (Step.WAITING, PLAN, replace(FACTS, labels={MIG_STATE: "failed"}), Step.WAITING, "could not be applied"),
        (Step.WAITING, BY_HAND, replace(FACTS, labels={}), Step.VERIFYING, ""),
        (
            Step.WAITING, BY_HAND,
            replace(FACTS, labels={"nvidia.com/gpu-driver-upgrade-state": "pod-restart-required"}),
            Step.WAITING, "is in the state pod-restart-required",
        ),
        (Step.VERIFYING, PLAN, FACTS, Step.RELEASING, ""),
        (Step.VERIFYING, PLAN, replace(FACTS, unready=UNWELL), Step.VERIFYING, "The node has not been ready."),
        (Step.VERIFYING, PLAN, replace(FACTS, unready=SILENT), Step.VERIFYING, SAID),
        (Step.PLANNED, replace(PLAN, holds_from=NOW + HOUR), replace(FACTS, unready=SILENT), Step.PLANNED, ""),
        (Step.PLANNED, PLAN, replace(FACTS, unready=SILENT), Step.HELD, ""),
        (Step.HELD, replace(PLAN, starts_at=NOW + HOUR), replace(FACTS, unready=SILENT), Step.HELD, SAID),
        (Step.HELD, PLAN, replace(FACTS, unready=SILENT), Step.DRAINING, ""),
        (
            Step.DRAINING, PLAN, replace(FACTS, unready=SILENT, runs=("a/one",)),
            Step.DRAINING, f"{SAID} Whether 1 workload (a/one) still runs there is unknown.",
        ),
        (
            Step.DRAINING, PLAN, replace(FACTS, unready=UNWELL, runs=("a/one",)),
            Step.DRAINING, "The node has not been ready. 1 workload (a/one) is still on the node.",
        ),
        (Step.DRAINING, PLAN, replace(FACTS, unready=SILENT, runs=None), Step.DRAINING, "It is not known what runs"),
        (Step.DRAINING, PLAN, replace(FACTS, unready=SILENT), Step.CHANGING, ""),
        (Step.CHANGING, BY_HAND, replace(FACTS, unready=SILENT), Step.CHANGING, f"{SAID} It waits until an operator"),
        (
            Step.WAITING, PLAN, replace(FACTS, labels={}, unready=SILENT),
            Step.WAITING, f"{SAID} The MIG manager has not responded",
        ),
        (Step.VERIFYING, PLAN, replace(FACTS, devices={SLICE: 6}), Step.VERIFYING, f"offers 6 of 7 {SLICE}."),
        (Step.VERIFYING, PLAN, replace(FACTS, devices={}), Step.VERIFYING, f"offers 0 of 7 {SLICE}."),
        (
            Step.VERIFYING, PLAN, replace(FACTS, devices={SLICE: 7, "nvidia.com/gpu": 1}),
            Step.VERIFYING, "offers 1 of 0 nvidia.com/gpu.",
        ),
        (Step.VERIFYING, PLAN, replace(FACTS, devices={SLICE: 7, "rdma/hca": 8}), Step.RELEASING, ""),
        (Step.RELEASING, PLAN, FACTS, Step.DONE, ""),
    ],
)  # fmt: skip
def test_what_follows(step: Step, plan: NodePlan, facts: NodeFacts, then: Step, problem: str) -> None:
    found = next_step(step, plan, facts, NOW)
    assert found.step == then
    assert (problem in found.problem) if problem else not found.problem
    assert not found.goes_back


def test_a_cancel_goes_back_only_after_the_change() -> None:
    canceled = replace(PLAN, is_canceled=True)
    found = {step: next_step(step, canceled, FACTS, NOW) for step in Step}
    assert {step for step, one in found.items() if one.goes_back} == {Step.CHANGING, Step.WAITING, Step.VERIFYING}
    assert found[Step.PLANNED].step == Step.DONE
    assert found[Step.HELD].step == found[Step.DRAINING].step == Step.RELEASING
    back = replace(canceled, is_going_back=True)
    assert next_step(Step.WAITING, back, replace(FACTS, labels={MIG_STATE: "failed"}), NOW).step == Step.WAITING
    by_hand = replace(BY_HAND, is_canceled=True)
    assert next_step(Step.CHANGING, by_hand, FACTS, NOW).step == Step.RELEASING


@pytest.mark.parametrize("step", [one for one in Step if one not in (Step.RELEASING, Step.DONE)])
def test_a_release_waits_for_nothing(step: Step) -> None:
    facts = NodeFacts(SILENT, {}, {}, None)
    assert (
        next_step(step, replace(PLAN, is_released=True, is_canceled=step != Step.PLANNED), facts, NOW).step
        == Step.RELEASING
    )


def test_only_a_failure_is_reported_at_once() -> None:
    failed = replace(FACTS, labels={MIG_STATE: "failed"})
    assert has_failed(Step.WAITING, failed)
    assert not has_failed(Step.VERIFYING, failed), "the state of an older layout"
    assert not has_failed(Step.WAITING, FACTS)


def test_a_held_node_waits_for_something_only_while_it_is_not_ready() -> None:
    """It may be held for hours before it is stuck."""
    silent, long_ago = replace(FACTS, unready=SILENT), NOW - 9 * HOUR
    assert waits_since(Step.HELD, silent, long_ago) == NOW - HOUR
    assert waits_since(Step.HELD, silent, NOW) == NOW, "silent before it was held"
    assert {waits_since(step, silent, long_ago) for step in Step if step is not Step.HELD} == {long_ago}
    assert waits_since(Step.HELD, FACTS, long_ago) == waits_since(Step.HELD, None, long_ago) == long_ago


def test_only_pods_whose_end_nothing_confirms_have_to_be_removed_by_hand() -> None:
    silent = replace(FACTS, unready=SILENT)
    assert "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute" in remedy(Step.DRAINING, silent)
    assert not remedy(Step.DRAINING, replace(FACTS, unready=UNWELL))
    assert not any(remedy(step, silent) for step in Step if step is not Step.DRAINING)
    assert not remedy(Step.DRAINING, None)
