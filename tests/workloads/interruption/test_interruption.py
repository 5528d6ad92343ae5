"""Who may preempt a run and what is said of it, from figures alone: each case beside a neighbour that must differ."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cluster.reads.observed import Condition
from workloads.interruption.exposure import (
    HeldUnits,
    QuotaPosition,
    Standing,
    Threat,
    exposure,
    position_at_launch,
    position_of_new_run,
    quota_positions,
)
from workloads.interruption.loss import interruption_loss
from workloads.interruption.preemption import (
    FAIR_SHARING,
    IN_TEAM,
    RECLAIM,
    UNKNOWN_CAUSE,
    WHILE_BORROWING,
    Interruption,
    Preemptor,
    interruption_from_condition,
    preemption_cause,
    preemption_rule,
    preemptor_of,
)

NOW = datetime(2026, 11, 22, 7, 12, tzinfo=UTC)
PRODUCTION, INTERACTIVE, BATCH = range(3)
OWN, GRACE = QuotaPosition(Standing.OWN), QuotaPosition(Standing.IN_GRACE)


def held(key: str, units: int = 1, rank: int = BATCH, minutes_ago: int = 60) -> HeldUnits:
    return HeldUnits(key, units, rank, NOW - timedelta(minutes=minutes_ago))


def borrowed(units: int) -> QuotaPosition:
    return QuotaPosition(Standing.BORROWED, units)


@pytest.mark.parametrize(
    ("granted", "keepable", "runs", "expected"),
    [
        (2, 2, [held("a"), held("b")], {"a": OWN, "b": OWN}),
        # Among equal priorities, the run that was admitted last is preempted first.
        (1, 1, [held("new", minutes_ago=1), held("old")], {"old": OWN, "new": borrowed(1)}),
        # Before that the least urgent run, however long it has run.
        (1, 1, [held("new", rank=INTERACTIVE, minutes_ago=1), held("old")], {"new": OWN, "old": borrowed(1)}),
        # Part of a run is borrowed; the whole run is preempted.
        (1, 1, [held("wide", 4)], {"wide": borrowed(3)}),
        (0, 0, [held("wide", 4)], {"wide": borrowed(4)}),
        # A run that may continue in the grace of an ended grant is not borrowed yet.
        (
            1,
            2,
            [held("a"), held("b", minutes_ago=5), held("c", minutes_ago=1)],
            {"a": OWN, "b": GRACE, "c": borrowed(1)},
        ),
    ],
)
def test_the_last_of_the_least_urgent_is_borrowed(
    granted: int, keepable: int, runs: list[HeldUnits], expected: dict[str, QuotaPosition]
) -> None:
    assert quota_positions(runs, granted=granted, keepable=keepable) == expected


@pytest.mark.parametrize(
    ("new", "keepable", "expected"),
    [
        (held("new", 1), 3, OWN),
        (held("new", 2), 3, borrowed(1)),
        # It has priority over the running work, which is then borrowed.
        (held("new", 2, INTERACTIVE), 3, OWN),
        # Nothing new starts in a grace.
        (held("new", 2), 4, OWN),
    ],
)
def test_what_waits_is_placed_behind_what_runs(new: HeldUnits, keepable: int, expected: QuotaPosition) -> None:
    runs = [held("a"), held("b")]
    assert position_of_new_run(runs, new, granted=3, keepable=keepable, borrowing_limit=4) == expected
    assert position_of_new_run(runs, new, granted=3, keepable=keepable, borrowing_limit=0) == OWN, (
        "it waits for its own"
    )


@pytest.mark.parametrize(
    ("units", "own", "limit", "expected"),
    [(2, 2, 4, OWN), (3, 2, 4, borrowed(1)), (3, 0, 4, borrowed(3)), (3, -1, 4, borrowed(3)), (3, 2, 0, OWN)],
)
def test_a_launch_takes_the_teams_own_units_first(units: int, own: int, limit: int, expected: QuotaPosition) -> None:
    assert position_at_launch(units, own=own, borrowing_limit=limit) == expected


BY_OTHERS = Threat(Preemptor.OTHER_TEAM, "InCohortReclamation")


@pytest.mark.parametrize(
    ("place", "units", "rank", "threats", "sentence"),
    [
        (OWN, 2, PRODUCTION, (),
         "It uses your team's quota: no other team can reclaim its units. No workload of your team can preempt it."),
        (OWN, 2, INTERACTIVE, (Threat(Preemptor.OWN_TEAM, "InClusterQueue", ("production",)),),
         "It uses your team's quota: no other team can reclaim its units. Workloads of your team with the priority "
         "production can preempt it."),
        (borrowed(1), 1, PRODUCTION, (BY_OTHERS,),
         "It uses a borrowed GPU: the lending team reclaims it as soon as it needs it."),
        (borrowed(2), 2, BATCH,
         (BY_OTHERS, Threat(Preemptor.OWN_TEAM, "InClusterQueue", ("production", "interactive"))),
         "It uses 2 borrowed GPUs: the lending team reclaims them as soon as it needs them. Workloads of your team "
         "with the priority production or interactive can also preempt it."),
        (borrowed(1), 2, PRODUCTION, (BY_OTHERS,),
         "1 of its 2 GPUs is borrowed: the lending team reclaims it as soon as it needs it, and then the run "
         "loses all 2."),
        (GRACE, 2, PRODUCTION, (),
         "It uses an expired grant: no other team can reclaim its units before the grace period ends. No workload of "
         "your team can preempt it."),
        (QuotaPosition(Standing.NO_QUEUE), 2, BATCH, (),
         "It is not managed by the queue and cannot be preempted."),
    ],
)  # fmt: skip
def test_who_may_interrupt_it_and_by_which_rule(
    place: QuotaPosition, units: int, rank: int, threats: tuple[Threat, ...], sentence: str
) -> None:
    found = exposure(place, units=units, rank=rank, unit="GPU")
    assert (found.threats, found.sentence) == (threats, sentence)


def test_before_it_has_its_units_it_is_told_as_what_would_be() -> None:
    found = exposure(borrowed(3), units=4, rank=BATCH, unit="GPU", holds=False)
    assert found.sentence.startswith("3 of its 4 GPUs would be borrowed:")
    assert "then the run would lose all 4" in found.sentence
    own = exposure(OWN, units=1, rank=PRODUCTION, unit="GPU", holds=False)
    assert own.sentence.startswith("It would use your team's quota")


@pytest.mark.parametrize(
    ("kind", "checkpoints", "claim", "path", "words"),
    [
        ("job", True, "", "", ("from its last checkpoint", "It has no volume")),
        ("job", False, "data", "", ("from the beginning", "/home/work are kept on the volume data")),
        (
            "notebook",
            False,
            "data",
            "/home/work/in",
            ("kernels and their variables are lost", "Files in /home/work/in are kept"),
        ),
    ],
)
def test_what_is_lost(kind: str, checkpoints: bool, claim: str, path: str, words: tuple[str, str]) -> None:
    found = interruption_loss(kind, checkpoints=checkpoints, claim=claim, mount_path=path)
    assert all(word in found for word in words)


@pytest.mark.parametrize(
    ("reason", "message", "rule", "whose"),
    [
        ("InCohortReclamation", "", RECLAIM, Preemptor.OTHER_TEAM),
        ("InClusterQueue", "", IN_TEAM, Preemptor.OWN_TEAM),
        ("InCohortReclaimWhileBorrowing", "", WHILE_BORROWING, Preemptor.OTHER_TEAM),
        ("InCohortFairSharing", "", FAIR_SHARING, Preemptor.OTHER_TEAM),
        # After the run was admitted again.
        ("QuotaReserved", "Previously: Preempted to accommodate a workload (UID: 1) due to reclamation within the "
         "cohort; preemptor path: /all/team-b", RECLAIM, Preemptor.OTHER_TEAM),
        ("QuotaReserved", "Previously: Preempted to accommodate a workload (UID: 1) due to prioritization in the "
         "ClusterQueue", IN_TEAM, Preemptor.OWN_TEAM),
        ("SomethingNew", "of a later Kueue", "", None),
    ],
)  # fmt: skip
def test_the_rule_is_kueues_own_name_for_it(reason: str, message: str, rule: str, whose: Preemptor | None) -> None:
    assert (preemption_rule(reason, message), preemptor_of(rule)) == (rule, whose)


def test_what_is_not_known_is_not_told_as_known() -> None:
    assert preemption_cause("") == UNKNOWN_CAUSE
    text = Interruption(None, "", 1).sentence
    assert text == f"Preempted: {UNKNOWN_CAUSE}."


def preempted(status: str) -> Condition:
    return Condition("Preempted", status, "InCohortReclamation", "", NOW)


def test_the_time_of_a_condition_that_is_over_is_of_what_ended_it() -> None:
    assert interruption_from_condition(preempted("True"), 1) == Interruption(NOW, RECLAIM, 1)
    assert interruption_from_condition(preempted("False"), 2) == Interruption(None, RECLAIM, 2)


def test_an_interruption_says_when_why_by_which_rule_and_how_often() -> None:
    found = Interruption(NOW, RECLAIM, 2, back_at=NOW + timedelta(minutes=3))
    assert found.sentence.startswith("Preempted at ")
    assert "reclaimed by the lending team (Kueue's rule InCohortReclamation)." in found.sentence
    assert "07:12" in found.sentence
    assert "This was the 2nd time. It has been running again since" in found.sentence
    assert found.brief.endswith("by Kueue's rule InCohortReclamation, for the 2nd time.")
    assert found.count.startswith("interrupted 2 times, last at")
    removed = Interruption(None, "", 1, cause="pod_removed")
    assert removed.sentence == "Interrupted: its pod was removed from its node in the cluster."
    requeued = Interruption(None, "", 1, cause="units_taken_back")
    assert requeued.sentence == "Preempted: its units were reclaimed by the queue."
