"""Collects the rows of a plan, in the portal's terms, with the refusals that need no look at what exists. Pure."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from django.utils.text import slugify

from portal.core.csv_text import FORMULA
from portal.core.errors import refuse
from portal.core.plain_text import hidden_refusal
from tenants.core.forms import end_of_day
from tenants.members.policy import MEMBER_ROLES
from tenants.onboarding.imports.types import (
    FILE_BYTES_MAX,
    ROWS_MAX,
    ImportedGrant,
    ImportedMember,
    ImportedTeam,
    ImportOptions,
    ImportPlan,
    Outcome,
    Person,
    PlanRow,
    SetAside,
)

NAME_MAX = 80
SLUG_MAX = 40
SHOWN = 80


def text_of(data: bytes) -> str:
    """UTF-8, with or without a byte order mark. Raises Refused: too_large, bad_value."""
    if len(data) > FILE_BYTES_MAX:
        text = f"The file has {len(data):,} bytes; the limit is {FILE_BYTES_MAX:,}. Import it in parts."
        raise refuse("too_large", text, field="file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = data[: error.start].count(b"\n") + 1
        raise refuse("bad_value", f"Line {at} is not UTF-8. Save the file as UTF-8.", field="file") from error


def json_of(data: bytes) -> Any:
    """Raises Refused: too_large, bad_value, not_json."""
    try:
        return json.loads(text_of(data))
    except (ValueError, RecursionError) as error:
        raise refuse("not_json", f"The file is not valid JSON: {error}.", field="file") from error


def records(value: Any, what: str) -> list[Mapping[str, Any]]:
    """A list of objects. Raises Refused: bad_value."""
    if isinstance(value, list) and all(isinstance(one, dict) for one in value):
        return value
    raise refuse("bad_value", f"{what} has to be a list of objects.", field="file")


def text_at(record: Mapping[str, Any], name: str) -> str:
    """A text in one line; "" if it is missing or no text."""
    found = record.get(name)
    return " ".join(found.split()) if isinstance(found, str) else ""


def day_of(text: str) -> date | None:
    """A date, or the day of a moment (2027-03-31T00:00:00Z)."""
    try:
        return date.fromisoformat(text.partition("T")[0])
    except ValueError:
        return None


@dataclass
class PlanBuilder:
    options: ImportOptions
    rows: list[PlanRow] = field(default_factory=list)
    # By slug: what identifies the team in the other system. By team and class: its quota.
    _teams: dict[str, str] = field(default_factory=dict)
    _grants: dict[tuple[str, str], ImportedGrant] = field(default_factory=dict)

    def plan(self, source: str) -> ImportPlan:
        """Raises Refused: too_large, bad_value."""
        if len(self.rows) > ROWS_MAX:
            text = f"The file has {len(self.rows):,} rows; the limit is {ROWS_MAX:,}. Import it in parts."
            raise refuse("too_large", text, field="file")
        if not self.rows:
            raise refuse("bad_value", "The file contains no teams, members or quota.", field="file")
        return ImportPlan(source, tuple(self.rows))

    # ---- rows that need no action --------------------------------------------------------------------------------

    def refused(self, place: str, kind: str, title: str, name: str, text: str) -> None:
        self.rows.append(SetAside(place, kind, title[:SHOWN], Outcome.REFUSED, text, name))

    def left_out(self, place: str, kind: str, title: str, text: str) -> None:
        self.rows.append(SetAside(place, kind, title[:SHOWN], Outcome.LEFT_OUT, text))

    def kept(self, place: str, kind: str, title: str, text: str) -> None:
        self.rows.append(SetAside(place, kind, title[:SHOWN], Outcome.KEPT, text))

    # ---- rows for the actions ------------------------------------------------------------------------------------

    def team(self, place: str, *, key: str, name: str, owners: Iterable[Person], slug: str = "") -> str:
        """Returns the slug, or "" if the team is refused. `key` identifies it in the other system: if two have the same
        slug, the second is refused, because two teams would become one.
        """
        slug = self.options.teams.get(key) or self.options.teams.get(name) or slug
        slug = slug or slugify(name)[:SLUG_MAX].strip("-_")
        other = self._teams.get(slug, key)
        way_out = f"Give it another one: --team '{key[:SHOWN]}=short-name'."
        problem, field_name = cell_problem(name), "name"
        if not problem and not slug:
            problem = f"No short name can be made of '{name[:SHOWN]}': it has no Latin letters or digits. {way_out}"
        elif not problem and other != key:
            problem, field_name = f"{other[:SHOWN]} has the short name {slug}, too. {way_out}", "team"
        if problem:
            self.refused(place, "team", slug or name, field_name, problem)
            return ""
        self._teams[slug] = key
        known = tuple(owner for owner in owners if owner.email)
        if not known and self.options.owner:
            known = (Person(address(self.options.owner)),)
        note = f" The name is cut to {NAME_MAX} characters." if len(name) > NAME_MAX else ""
        self.rows.append(ImportedTeam(place, slug, name[:NAME_MAX].strip(), known, note))
        return slug

    def member(self, place: str, *, team: str, person: Person, role: str) -> None:
        title = f"{team} {person.email}"
        if not person.email:
            text = "This person has no email address. Add it in the other system, or leave the person out."
            self.refused(place, "member", f"{team} {person.name}", "email", text)
        elif problem := cell_problem(person.email):
            self.refused(place, "member", title, "email", problem)
        elif problem := cell_problem(person.name):
            self.refused(place, "member", title, "name", problem)
        elif role not in MEMBER_ROLES:
            text = f"There is no role '{role[:SHOWN]}'. Use one of {', '.join(MEMBER_ROLES)}."
            self.refused(place, "member", title, "role", text)
        else:
            self.rows.append(ImportedMember(place, team, person, role))

    def grant(self, place: str, *, team: str, theirs: str, units: object, until: str) -> None:
        """`units` as the file has them; `until`: the last day, "" for the default."""
        title = f"{team} {theirs}"
        ours = self.options.classes.get(theirs, theirs)
        count, day = whole_number(units), day_of(until) if until else self.options.until
        if not ours:
            self.left_out(place, "quota", title, f"--class leaves out '{theirs[:SHOWN]}'.")
        elif ours not in self.options.ours:
            offered = ", ".join(sorted(self.options.ours)) or "none"
            text = (
                f"There is no class '{ours[:SHOWN]}'. Say which one it is: --class '{theirs[:SHOWN]}=CLASS', or "
                f"--class '{theirs[:SHOWN]}=' to leave it out. Classes: {offered}."
            )
            self.refused(place, "quota", title, "class", text)
        elif count is None or count < 1:
            text = f"'{str(units)[:SHOWN]}' is not a number of units. Enter a whole number from 1."
            self.refused(place, "quota", title, "units", text)
        elif day is None:
            text = "Give the last day of this quota as 2027-03-31, or of all quota without one: --until 2027-03-31."
            self.refused(place, "quota", title, "until", f"'{until[:SHOWN]}' is not a date. {text}" if until else text)
        else:
            row = ImportedGrant(place, team, ours, count, end_of_day(day))
            first = self._grants.setdefault((team, ours), row)
            if (first.units, first.until) == (count, day):
                self.rows.append(row)
                return
            text = (
                f"{first.place} gives {team} {first.units} of {ours} until {first.until}; this row says {count} until "
                f"{day}. A team has one total of a class: write the total in one row."
            )
            self.refused(place, "quota", title, "class", text)


def cell_problem(text: str) -> str:
    """Why a text cannot be a name or an address; "" if it can."""
    if text.startswith(FORMULA):
        return f"'{text[:SHOWN]}' begins like a formula of a spreadsheet. Remove '{text[0]}'."
    hidden = hidden_refusal("", text)
    return hidden.message if hidden else ""


def whole_number(value: object) -> int | None:
    """The number, if it is written as a whole one (4, "4", 4.0); a truth value is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 9:
        return int(value)
    return None


def address(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip().lower()
