"""What a hold and a retirement mean, in one sentence each, for every page, form and mail. Pure."""

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
    """ "A100 is held since 09:10 for a driver update; expected to open at 14:00."; "" of a class that is not held."""
    if one.held_since is None:
        return ""
    text = f"{one.name} is held since {time_or_date(one.held_since, now=now)} for {one.held_reason}"
    if one.held_until is None:
        return f"{text}; nobody has said until when."
    expected = "expected" if one.held_until > now else "it was expected"
    return f"{text}; {expected} to open at {time_or_date(one.held_until, now=now)}."


def retirement_sentence(
    *,
    name: str,
    life_cycle: str,
    successor: str,
    message: str,
    runs_until: datetime | None,
    is_storage: bool = False,
) -> str:
    """For those who hold it; "" of a class that is not leaving."""
    if life_cycle not in (RETIRING, RETIRED):
        return ""
    sentences = [f"{name} is being retired." if life_cycle == RETIRING else f"{name} is retired."]
    if is_storage:
        sentences.append("Volumes stay.")
    elif life_cycle == RETIRING and runs_until is not None:
        sentences.append(f"What runs may go on until {date_and_time(runs_until)}.")
    elif life_cycle == RETIRING:
        sentences.append("What runs goes on.")
    if successor:
        sentences.append(f"Its successor is {successor}.")
    if message:
        sentences.append(with_full_stop(message))
    return " ".join(sentences)
