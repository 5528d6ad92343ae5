"""Estimated start ranges of queued runs: bounds that hold, in the expected order, and no number without a basis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from workloads.status.estimates.estimate import (
    FOLLOWED,
    Basis,
    CannotTell,
    Estimate,
    EstimateFacts,
    RunningUnits,
    UnitsAhead,
    WaitReason,
    estimate,
)

NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
ASKED = NOW - timedelta(minutes=20)
NEVER = datetime.max.replace(tzinfo=UTC)


def at(clock: str) -> datetime:
    hour, minute = clock.split(":")
    return NOW.replace(hour=int(hour), minute=int(minute))


def minutes(*values: int) -> tuple[timedelta, ...]:
    return tuple(timedelta(minutes=value) for value in values)


# Four GPUs granted and in use, by two runs that end at 10:54 and 11:25.
FULL = EstimateFacts(
    wait=WaitReason.UNITS,
    units=1,
    since=ASKED,
    unit="GPU",
    position=1,
    granted=4,
    running=(RunningUnits(2, at("10:54")), RunningUnits(2, at("11:25"))),
)
FIVE = minutes(30, 40, 50, 60, 120)


@dataclass(frozen=True)
class Case:
    """`told`: "10:54 to 10:59", or the sentence if no estimate is possible; `basis`: a part of the basis."""

    name: str
    facts: EstimateFacts
    told: str
    basis: str = ""


CASES = [
    Case("one GPU, by the first end", FULL, "10:54 to 10:59", "1st in your team's queue; based on the known end times"),
    Case("three GPUs need both ends", replace(FULL, units=3), "11:25 to 11:30"),
    Case("more than is granted", replace(FULL, units=5), "it requests 5 GPUs, and your team may use at most 4 GPUs"),
    Case("what may be borrowed may come at once", replace(FULL, borrowing=1), "10:00 to 10:59"),
    Case(
        "only others' idle GPUs would do",
        replace(FULL, units=5, borrowing=1),
        "it waits for idle GPUs of other teams, and it is unknown when there are enough; too little history (0 of 5 "
        "starts)",
    ),
    Case(
        "others' idle GPUs, with recent starts, and no place in the queue",
        replace(FULL, units=5, borrowing=5, starts=FIVE),
        "10:00 to 11:40",
        "based on 5 starts of the last 30 days that waited as long",
    ),
    Case("a grant begins", replace(FULL, units=5, changes=((at("10:30"), 4),)), "10:54 to 10:59"),
    Case("a grant ends before", replace(FULL, changes=((at("10:30"), -2),)), "11:25 to 11:30"),
    Case(
        "one replaced by a larger one", replace(FULL, changes=((at("10:30"), -4), (at("10:30"), 5))), "10:30 to 10:35"
    ),
    Case("one ahead takes the first end", replace(FULL, units=2, ahead=(UnitsAhead(2, 600),)), "11:25 to 11:30"),
    Case("one ahead is short", replace(FULL, units=2, ahead=(UnitsAhead(2, 10),)), "10:54 to 11:14"),
    Case("one ahead has no end and may be short", replace(FULL, units=2, ahead=(UnitsAhead(2),)), "10:54 to 11:30"),
    Case("a larger one ahead is passed over", replace(FULL, ahead=(UnitsAhead(3, 600),)), "10:54 to 11:30"),
    Case("a smaller one behind may overtake", replace(FULL, units=2, behind=(1,)), "10:54 to 11:30"),
    Case("one as large behind does not", replace(FULL, units=2, behind=(2,)), "10:54 to 10:59"),
    Case(
        "no known end",
        replace(FULL, running=(RunningUnits(2), RunningUnits(2))),
        "2 workloads ahead have no time limit; too little history (0 of 5 starts)",
    ),
    Case(
        "one known end is enough",
        replace(FULL, running=(RunningUnits(2), RunningUnits(2, at("11:25")))),
        "10:00 to 11:30",
    ),
    Case(
        "no known end, and four recent starts",
        replace(FULL, running=(RunningUnits(4),), starts=FIVE[:4]),
        "1 workload ahead has no time limit; too little history (4 of 5 starts)",
    ),
    Case(
        "no known end, and five",
        replace(FULL, running=(RunningUnits(4),), starts=FIVE),
        "10:00 to 11:40",
        "based on 5 starts",
    ),
    Case(
        "shorter waits than its own say nothing",
        replace(FULL, running=(RunningUnits(4),), starts=(*FIVE[1:], *minutes(1, 5, 20))),
        "1 workload ahead has no time limit; too little history (4 of 5 starts)",
    ),
    Case(
        "known ends and recent starts",
        replace(FULL, starts=minutes(80, 300, 300, 300, 300)),
        "10:54 to 10:59",
        "based on the known end times of your team's runs and 5 starts of the last 30 days that waited as long; sooner",
    ),
    Case(
        "recent starts that were all before the first known end",
        replace(FULL, starts=minutes(30, 40, 50, 60, 70)),
        "10:54 to 10:59",
        "based on the known end times of your team's runs; sooner if a run ends early",
    ),
    Case(
        "recent starts before the first known end, and no known latest",
        replace(FULL, running=(RunningUnits(4, at("11:25")),), ahead=(UnitsAhead(1),) * 4, starts=FIVE),
        "4 workloads ahead have no time limit; too little history (1 of 5 starts)",
    ),
    Case(
        "recent starts after the first known end, and no known latest",
        replace(FULL, running=(RunningUnits(4, at("11:25")),), ahead=(UnitsAhead(1),) * 4, starts=minutes(*[130] * 5)),
        "11:25 to 11:50",
        "based on the known end times of your team's runs and 5 starts",
    ),
    Case(
        "too far back for run times",
        replace(FULL, ahead=(UnitsAhead(1, 10),) * (FOLLOWED + 1)),
        "21 workloads of your team are ahead; too little history (0 of 5 starts)",
    ),
    Case(
        "no node, whatever the team's own ends",
        replace(FULL, wait=WaitReason.NODE, units=4),
        "no single node has 4 GPUs free, and it is unknown when one will; too little history (0 of 5 starts)",
    ),
    Case("no node, with recent starts", replace(FULL, wait=WaitReason.NODE, units=4, starts=FIVE), "10:00 to 11:40"),
    Case(
        "held, nobody says until when",
        replace(FULL, wait=WaitReason.HELD),
        "scheduling of its class is paused without an end time",
    ),
    Case(
        "held until the ends are over",
        replace(FULL, wait=WaitReason.HELD, held_until=at("12:00")),
        "12:00 to 12:05",
        "if scheduling resumes as expected",
    ),
    Case(
        "held until before the first end", replace(FULL, wait=WaitReason.HELD, held_until=at("10:10")), "10:54 to 10:59"
    ),
    Case(
        "held, nothing runs",
        replace(FULL, wait=WaitReason.HELD, held_until=at("12:00"), running=()),
        "12:00 to 12:05",
        "unused quota",
    ),
    Case(
        "held longer than was said",
        replace(FULL, wait=WaitReason.HELD, held_until=at("09:00"), starts=FIVE),
        "scheduling of its class is still paused, longer than expected",
    ),
    Case("never", replace(FULL, wait=WaitReason.NEVER, starts=FIVE), "it cannot start with its current configuration"),
    Case(
        "no queue",
        replace(FULL, wait=WaitReason.QUEUE, starts=FIVE),
        "your team's queue does not admit workloads at present",
    ),
    Case(
        "no node of its kind",
        replace(FULL, wait=WaitReason.NODES, starts=FIVE),
        "it does not fit on the nodes now, and it is unknown when it will",
    ),
    Case(
        "not looked at",
        replace(FULL, wait=WaitReason.UNSEEN, starts=FIVE),
        "the queue has not reported yet what it waits for",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_told(case: Case) -> None:
    found = estimate(case.facts, now=NOW)
    if isinstance(found, CannotTell):
        assert found.because == case.told
        return
    assert f"{found.earliest:%H:%M} to {found.latest:%H:%M}" == case.told
    assert case.basis in found.basis
    assert found.is_open == (found.earliest == NOW and case.facts.wait is not WaitReason.HELD)


def test_a_place_is_told_only_where_the_teams_own_units_decide() -> None:
    late = minutes(*[120] * 5)
    own, borrowed = (estimate(replace(FULL, units=units, borrowing=4, starts=late), now=NOW) for units in (4, 5))
    assert isinstance(own, Estimate)
    assert isinstance(borrowed, Estimate)
    assert "1st in your team's queue" in own.basis
    assert "queue" not in borrowed.basis


def test_moments_are_whole_minutes_outwards() -> None:
    end = at("10:54") + timedelta(seconds=20)
    found = estimate(replace(FULL, running=(RunningUnits(4, end),)), now=NOW)
    assert isinstance(found, Estimate)
    assert (found.earliest, found.latest, found.code) == (at("10:54"), at("11:00"), Basis.ENDS)


# ---- consistency of estimates ----------------------------------------------------------------------------------------

SIZES = st.integers(1, 4)
MOMENTS = st.one_of(st.none(), st.integers(-30, 600).map(lambda value: NOW + timedelta(minutes=value)))
AHEAD = st.builds(UnitsAhead, SIZES, st.one_of(st.none(), st.integers(1, 600)))
FACTS = st.builds(
    EstimateFacts,
    wait=st.sampled_from([WaitReason.UNITS, WaitReason.NODE, WaitReason.HELD]),
    units=SIZES,
    since=st.integers(0, 300).map(lambda value: NOW - timedelta(minutes=value)),
    unit=st.just("GPU"),
    position=st.just(1),
    granted=st.integers(0, 8),
    borrowing=st.integers(0, 4),
    changes=st.lists(
        st.tuples(st.integers(1, 600).map(lambda value: NOW + timedelta(minutes=value)), st.integers(-4, 4)), max_size=3
    ).map(tuple),
    running=st.lists(st.builds(RunningUnits, SIZES, MOMENTS), max_size=5).map(tuple),
    ahead=st.lists(AHEAD, max_size=5).map(tuple),
    behind=st.lists(SIZES, max_size=4).map(tuple),
    held_until=st.integers(1, 300).map(lambda value: NOW + timedelta(minutes=value)),
    starts=st.one_of(
        st.just(()), st.lists(st.integers(1, 900), min_size=5, max_size=12).map(lambda all: minutes(*all))
    ),
)


def bounds(facts: EstimateFacts) -> tuple[datetime, datetime]:
    """Returns NEVER for both bounds if no estimate is possible."""
    found = estimate(facts, now=NOW)
    return (NEVER, NEVER) if isinstance(found, CannotTell) else (found.earliest, found.latest)


def is_no_later(one: EstimateFacts, other: EstimateFacts) -> bool:
    """Compares the latest; also the earliest, if both are known."""
    (first, last), (first_of_other, last_of_other) = bounds(one), bounds(other)
    return last <= last_of_other and (NEVER in (first, first_of_other) or first <= first_of_other)


@given(FACTS)
def test_the_earliest_is_not_after_the_latest_and_nothing_is_over(facts: EstimateFacts) -> None:
    earliest, latest = bounds(facts)
    assert NOW <= earliest <= latest


@given(FACTS, st.integers(0, 600), st.data())
def test_an_earlier_end_never_makes_it_later(facts: EstimateFacts, earlier: int, data: st.DataObject) -> None:
    if not facts.running:
        return
    place = data.draw(st.integers(0, len(facts.running) - 1))
    one = facts.running[place]
    end = NOW + timedelta(minutes=600) if one.ends_at is None else one.ends_at - timedelta(minutes=earlier)
    if one.ends_at is None:
        # A known end replaces an unknown one: only the latest is compared, as an unknown end may be any time. No
        # history, because it does not cover a known end that comes after the grant has expired.
        facts = replace(facts, starts=())
        sooner = replace(
            facts, running=(*facts.running[:place], replace(one, ends_at=end), *facts.running[place + 1 :])
        )
        assert bounds(sooner)[1] <= bounds(facts)[1]
        return
    sooner = replace(facts, running=(*facts.running[:place], replace(one, ends_at=end), *facts.running[place + 1 :]))
    assert is_no_later(sooner, facts)


@given(FACTS)
def test_fewer_units_are_never_later(facts: EstimateFacts) -> None:
    if facts.units > 1:
        assert is_no_later(replace(facts, units=facts.units - 1), facts)


@given(FACTS, AHEAD, st.data())
def test_one_more_ahead_is_never_earlier(facts: EstimateFacts, one: UnitsAhead, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(facts.ahead)))
    longer = replace(facts, ahead=(*facts.ahead[:place], one, *facts.ahead[place:]))
    assert is_no_later(facts, longer)


@given(FACTS)
@example(replace(FULL, starts=FIVE))
def test_history_never_promises_an_earlier_start_than_the_known_ends(facts: EstimateFacts) -> None:
    """What the pages say beside it: the first known end, and the units that are in use until then."""
    found, known = estimate(facts, now=NOW), estimate(replace(facts, starts=minutes(*[10**5] * 5)), now=NOW)
    if isinstance(found, Estimate) and isinstance(known, Estimate):
        assert found.earliest == known.earliest


@given(FACTS)
def test_no_range_from_fewer_than_five_starts_without_known_ends(facts: EstimateFacts) -> None:
    unbounded = replace(facts, running=(RunningUnits(facts.granted + 1),), changes=(), starts=facts.starts[:4])
    assert isinstance(estimate(unbounded, now=NOW), CannotTell)
