"""The sentences about a pause of scheduling and a retirement, for every page, form and email. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from portal.ui.text import date_and_time, time_or_date, with_full_stop

RETIRING, RETIRED = "retiring", "retired"


class HeldClass(Protocol):
    """A class's row, or a view of it."""

    @property
    def name(self) -> str: ...
    @property
    def held_since(self) -> datetime | None: ...
    @property
    def held_until(self) -> datetime | None: ...
    @property
    def held_reason(self) -> str: ...


def hold_sentence(one: HeldClass, *, now: datetime) -> str:
    """ "Scheduling of A100 has been paused since 09:10 for an update; expected to resume at 14:00."; "" if not held."""
    if one.held_since is None:
        return ""
    text = (
        f"Scheduling of {one.name} has been paused since {time_or_date(one.held_since, now=now)} for {one.held_reason}"
    )
    if one.held_until is None:
        return f"{text}; no end is set."
    expected = "expected" if one.held_until > now else "it was expected"
    return f"{text}; {expected} to resume at {time_or_date(one.held_until, now=now)}."


def retirement_sentence(
    *,
    name: str,
    life_cycle: str,
    successor: str,
    message: str,
    runs_until: datetime | None,
    is_storage: bool = False,
) -> str:
    """A sentence for teams with quota; "" for a class that is neither retiring nor retired."""
    if life_cycle not in (RETIRING, RETIRED):
        return ""
    sentences = [f"{name} is being retired." if life_cycle == RETIRING else f"{name} is retired."]
    if is_storage:
        sentences.append("Volumes are kept.")
    elif life_cycle == RETIRING and runs_until is not None:
        sentences.append(f"Running workloads may continue until {date_and_time(runs_until)}.")
    elif life_cycle == RETIRING:
        sentences.append("Running workloads continue.")
    if successor:
        sentences.append(f"Its successor is {successor}.")
    if message:
        sentences.append(with_full_stop(message))
    return " ".join(sentences)


def migration_advice(
    *, name: str, life_cycle: str, successor: str, runs_until: datetime | None, is_storage: bool = False
) -> str:
    """What the users of a class that is being retired should do. "" for other classes, and for storage: volumes stay
    where they are.
    """
    if life_cycle != RETIRING or is_storage:
        return ""
    if successor:
        instead = f"Launch on {successor} instead, and request quota of it if your team has none."
    else:
        instead = "Choose another class from the catalog for new workloads."
    return f"{instead} Save what runs on {name} before it is stopped." if runs_until is not None else instead
