"""Who follows logs, or events, in this process: bounded for each person and team, with a reserve for those with few.

Each follower of a log uses a thread that waits for the API server, so their number is bounded. One person, or one team,
must not use all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from portal.core.errors import Refusal, Refused

FOLLOWERS_MAX = 192
OF_PERSON_MAX = 10
OF_TEAM_MAX = 48
# The last ones are for persons who follow at most FEW logs, whatever their team has.
RESERVED = 64
FEW = 2


class Followers:
    """Used by the event loop alone, so it needs no lock. `what` is followed, in the plural."""

    def __init__(self, what: str = "logs") -> None:
        self._what = what
        self._of_person: Counter[int] = Counter()
        self._of_team: Counter[str] = Counter()

    @contextmanager
    def one(self, person: int, team: str) -> Iterator[None]:
        """Raises Refused: too_many_open (429)."""
        refusal = follow_refusal(
            of_person=self._of_person[person],
            of_team=self._of_team[team],
            of_all=self._of_person.total(),
            what=self._what,
        )
        if refusal is not None:
            raise Refused(refusal)
        self._of_person[person] += 1
        self._of_team[team] += 1
        try:
            yield
        finally:
            self._of_person = self._of_person - Counter([person])
            self._of_team = self._of_team - Counter([team])


def follow_refusal(*, of_person: int, of_team: int, of_all: int, what: str = "logs") -> Refusal | None:
    """The numbers are those who follow now. Pure."""
    if of_all >= FOLLOWERS_MAX:
        text = f"{of_all} {what} are being followed; the limit is {FOLLOWERS_MAX}. Try again later."
        return Refusal("too_many_open", text, status=429, retry_after_s=30)
    if of_person < FEW:
        return None
    if of_person >= OF_PERSON_MAX:
        text = f"You follow {of_person} {what}; the limit is {OF_PERSON_MAX}. Close some of them."
        return Refusal("too_many_open", text, status=429, retry_after_s=5)
    if of_team >= OF_TEAM_MAX:
        text = f"{of_team} {what} of this team are being followed; the limit is {OF_TEAM_MAX}. Close some of them."
        return Refusal("too_many_open", text, status=429, retry_after_s=5)
    if of_all >= FOLLOWERS_MAX - RESERVED:
        text = (
            f"{of_all} {what} are being followed. Until others end, each person can follow {FEW}; you follow "
            f"{of_person}. Close some of them, or try again later."
        )
        return Refusal("too_many_open", text, status=429, retry_after_s=30)
    return None
