"""Triage as one click, conflict or look: each single fact moves an otherwise clear request to another group."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from portal.core.errors import Refusal
from tenants.grants.combined_promises import Conflict
from tenants.grants.types import Overcommit
from tenants.requests.decisions.triage import TriageGroup, TriageLine, TriagePlan, TriageRequest, triage
from tenants.requests.rules.policy import IncreaseBounds, IncreaseFacts

USE = IncreaseFacts("A100", held=4, base=4, asked=6, days=30, peak=4, mean=3.5, seen_share=1.0, waited_share=0.25)
INCREASE = TriageLine("A100", "GPU", "base", asked=6, base=4, increase=USE)
RENEWAL = TriageLine("H100", "GPU", "base", asked=8, base=8)
PLAN = TriagePlan(is_ready=True, changed=3)
CLEAR = TriageRequest(12, (INCREASE, RENEWAL), PLAN)


def of(request: TriageRequest = CLEAR, **changes: object) -> tuple[TriageGroup, tuple[str, ...]]:
    found = triage(replace(request, **changes), IncreaseBounds())  # type: ignore[arg-type]
    return found.group, found.reasons


def with_line(**changes: object) -> TriageRequest:
    return TriageRequest(12, (replace(INCREASE, **changes), RENEWAL), PLAN)  # type: ignore[arg-type]


def test_one_click_says_what_speaks_for_it() -> None:
    assert of() == (
        TriageGroup.ONE_CLICK,
        (
            "A100, 4 to 6: of 4 units, peak usage in the last 30 days was 4 and average usage 3.5, 25 % of the runs "
            "waited.",
            "H100: renews 8 GPUs.",
            "Within the allocation limit at all times.",
            "Dry run accepted: 3 objects would change.",
        ),
    )


def test_less_than_now_needs_no_use() -> None:
    group, reasons = of(TriageRequest(12, (replace(RENEWAL, asked=2),), TriagePlan(is_ready=True)))
    assert group == TriageGroup.ONE_CLICK
    assert reasons[0] == "H100: reduces the total from 8 to 2."
    assert reasons[-1] == "Dry run accepted: no changes."


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"excess": Overcommit("A100", 3, 16)},
            "A100 would exceed its allocation limit of 16 by 3.",
        ),
        (
            {"rivals": Conflict((12, 14), 2, datetime(2026, 11, 23, tzinfo=UTC))},
            "A100 fits alone, but with #14 it exceeds the allocation limit by 2 from 23 Nov 2026.",
        ),
        (
            {"rivals": Conflict((3, 7, 12), 2, datetime(2026, 11, 23, tzinfo=UTC))},
            "A100 fits alone, but with #3 and #7 it exceeds the allocation limit by 2 from 23 Nov 2026.",
        ),
        (
            {"rivals": Conflict((1, 2, 3, 4, 5, 6, 7, 12), 2, datetime(2026, 11, 23, tzinfo=UTC))},
            "A100 fits alone, but with #1, #2, #3, #4, #5 and 2 more it exceeds the allocation limit by 2 "
            "from 23 Nov 2026.",
        ),
    ],
)
def test_a_line_that_promises_too_much_is_a_conflict(changes: dict[str, object], reason: str) -> None:
    assert of(with_line(**changes)) == (TriageGroup.CONFLICT, (reason,))


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (replace(PLAN, refused=2), "The cluster rejected 2 planned objects in the dry run."),
        (
            replace(PLAN, foreign=1),
            "1 planned object cannot be created: an object with that name exists that the portal did not create.",
        ),
    ],
)
def test_a_plan_that_the_cluster_does_not_take_is_a_conflict(plan: TriagePlan, reason: str) -> None:
    assert of(plan=plan) == (TriageGroup.CONFLICT, (reason,))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"excess": Overcommit("A100", 6, None)}, "The capacity of A100 is unknown: no current cluster data"),
        ({"refusal": Refusal("not_your_class", "A100 is decided by other approvers.")}, "A100 is decided by other"),
        ({"obstacle": "The period is over."}, "The period is over."),
        ({"obstacle": "The period is over.", "kind": "boost"}, "The period is over."),
        (
            {"kind": "boost", "asked": 1},
            "A100: temporary increase of 1 GPU. Temporary increases are not checked against past usage; decide from "
            "the justification.",
        ),
        ({"kind": "reclaim", "asked": 1}, "Reduces the quota of the team for A100."),
        ({"increase": None}, "A100: 6 instead of 4, but its usage is not measured."),
        ({"increase": replace(USE, peak=None, mean=None)}, "The team's usage of A100 is unknown"),
        ({"increase": replace(USE, seen_share=None)}, "was measured during an unknown part"),
        ({"increase": replace(USE, peak=2)}, "Peak usage of A100 in the last 30 days was 2 of 4"),
        ({"asked": 9, "increase": replace(USE, asked=9)}, "9 of A100 instead of 4 is an increase of more than 50 %"),
        ({"base": 0, "increase": replace(USE, base=0, held=0)}, "The team has no current total of A100"),
    ],
)
def test_what_is_unknown_or_outside_the_bounds_wants_a_look(changes: dict[str, object], reason: str) -> None:
    group, reasons = of(with_line(**changes))
    assert group == TriageGroup.LOOK
    assert len(reasons) == 1
    assert reason in reasons[0]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"is_asked_back": True}, "Information requested: the team has not answered yet."),
        ({"plan": TriagePlan(is_ready=False)}, "The plan is not ready yet."),
        (
            {"plan": replace(PLAN, error="The cluster did not answer.")},
            "The plan failed: The cluster did not answer.",
        ),
        (
            {"plan": TriagePlan(is_ready=False, error="Waiting: observe only.", is_observed=True)},
            "The plan waits: the portal only observes the cluster.",
        ),
        ({"lines": ()}, "It has no pending lines."),
    ],
)
def test_a_request_that_is_not_ripe_wants_a_look(changes: dict[str, object], reason: str) -> None:
    assert of(**changes) == (TriageGroup.LOOK, (reason,))


def test_a_conflict_tells_what_else_is_open() -> None:
    found = triage(replace(with_line(excess=Overcommit("A100", 3, 16)), is_asked_back=True), IncreaseBounds())
    assert found.group == TriageGroup.CONFLICT
    assert [reason[:10] for reason in found.reasons] == ["A100 would"]
    assert found.besides == ("Information requested: the team has not answered yet.",)


def test_narrower_bounds_make_a_look_of_it() -> None:
    assert triage(CLEAR, IncreaseBounds(units_max=5)).group == TriageGroup.LOOK
