"""The portal's own format: a CSV with one header, whose rows are teams, members or quota. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from portal.core.errors import refuse
from tenants.onboarding.imports.sources.builder import PlanBuilder, address, text_of
from tenants.onboarding.imports.types import ImportOptions, ImportPlan, Person

COLUMNS = ("kind", "team", "name", "email", "role", "class", "units", "until")
KINDS = ("team", "member", "quota")


def read(data: bytes, options: ImportOptions) -> ImportPlan:
    """Raises Refused: too_large, bad_value: errors of the whole file."""
    builder = PlanBuilder(options)
    for line, cells in _lines(text_of(data)):
        place = f"line {line}"
        if len(cells) != len(COLUMNS):
            text = f"This line has {len(cells)} cells instead of {len(COLUMNS)}: {', '.join(COLUMNS)}."
            builder.refused(place, "line", ", ".join(cells), "", text)
            continue
        _add(builder, place, dict(zip(COLUMNS, cells, strict=True)))
    return builder.plan("CSV")


def _add(builder: PlanBuilder, place: str, row: dict[str, str]) -> None:
    kind, team = row["kind"].lower(), row["team"]
    if kind not in KINDS:
        text = f"'{row['kind'][:80]}' is not a kind of row. Use {', '.join(KINDS)}."
        builder.refused(place, "line", team, "kind", text)
        return
    if not team:
        builder.refused(place, kind, "", "team", "Enter the short name of the team.")
        return
    person = Person(address(row["email"]), row["name"])
    if kind == "team":
        owners = (Person(person.email),)
        builder.team(place, key=team, name=row["name"] or team, owners=owners, slug=team)
        return
    team = builder.options.teams.get(team) or team
    if kind == "member":
        builder.member(place, team=team, person=person, role=row["role"].lower() or "member")
    else:
        builder.grant(place, team=team, theirs=row["class"], units=row["units"], until=row["until"])


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """The first line of each row, and its cells. A spreadsheet separates them with semicolons in some languages."""
    header = text.partition("\n")[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=";" if ";" in header else ",", strict=True)
    line = 1
    try:
        for cells in reader:
            found = [" ".join(cell.split()) for cell in cells]
            if line == 1:
                _check_header(found)
            elif any(found):
                yield line, found
            line = reader.line_num + 1
    except csv.Error as error:
        raise refuse("bad_value", f"Line {line} is not valid CSV: {error}.", field="file") from error


def _check_header(cells: list[str]) -> None:
    found = tuple(cell.lower() for cell in cells)
    if found != COLUMNS:
        text = f"The first line has to be {','.join(COLUMNS)}; it is '{','.join(cells)[:200]}'."
        raise refuse("bad_value", text, field="file")
