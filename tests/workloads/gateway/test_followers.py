"""How many logs a person and a team can follow: nobody uses all of them."""

from __future__ import annotations

import contextlib

import pytest

from portal.core.errors import Refused
from workloads.gateway.followers import (
    FEW,
    FOLLOWERS_MAX,
    OF_PERSON_MAX,
    OF_TEAM_MAX,
    RESERVED,
    Followers,
    follow_refusal,
)


def follow(followers: Followers, held: contextlib.ExitStack, person: int, team: str, times: int) -> int:
    """How many of them were allowed."""
    for done in range(times):
        try:
            held.enter_context(followers.one(person, team))
        except Refused:
            return done
    return times


def test_fifty_of_one_person_leave_all_others_theirs() -> None:
    followers = Followers()
    with contextlib.ExitStack() as held:
        assert follow(followers, held, 1, "team-a", 50) == OF_PERSON_MAX
        assert follow(followers, held, 2, "team-a", OF_PERSON_MAX) == OF_PERSON_MAX
        assert follow(followers, held, 3, "team-b", OF_PERSON_MAX) == OF_PERSON_MAX


def test_one_team_leaves_others_theirs_and_each_of_its_members_a_few() -> None:
    followers = Followers()
    with contextlib.ExitStack() as held:
        in_all = sum(follow(followers, held, person, "team-a", 50) for person in range(20))
        assert in_all >= OF_TEAM_MAX
        assert follow(followers, held, 99, "team-a", 50) == FEW
        assert follow(followers, held, 100, "team-b", OF_PERSON_MAX) == OF_PERSON_MAX


def test_the_last_ones_are_for_those_who_follow_few() -> None:
    followers = Followers()
    with contextlib.ExitStack() as held:
        for person in range(FOLLOWERS_MAX):
            follow(followers, held, person, f"team-{person}", FOLLOWERS_MAX - RESERVED - person * OF_PERSON_MAX)
        assert follow(followers, held, 1000, "team-1000", 50) == FEW
        for person in range(2000, 2000 + RESERVED):
            follow(followers, held, person, "team-x", FEW)
        assert follow(followers, held, 3000, "team-y", 1) == 0, "the limit of all"


def test_the_refusal_says_the_numbers() -> None:
    refusal = follow_refusal(of_person=OF_PERSON_MAX, of_team=1, of_all=1)
    assert refusal is not None
    assert (refusal.code, refusal.status) == ("too_many_open", 429)
    assert f"the limit is {OF_PERSON_MAX}" in refusal.message


def test_an_end_makes_room() -> None:
    followers = Followers()
    with contextlib.ExitStack() as held:
        follow(followers, held, 1, "team-a", 50)
    with contextlib.ExitStack() as held:
        assert follow(followers, held, 1, "team-a", 50) == OF_PERSON_MAX
    with pytest.raises(ValueError), followers.one(1, "team-a"):
        raise ValueError
    assert not followers._of_person
    assert not followers._of_team
