"""A dump of ColdFront as a plan. The rows are written as its models and its `dumpdata` describe them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from portal.core.errors import Refused
from tenants.core.forms import end_of_day
from tenants.onboarding.imports.sources import coldfront
from tenants.onboarding.imports.types import (
    ImportedGrant,
    ImportedMember,
    ImportedTeam,
    ImportOptions,
    ImportPlan,
    Outcome,
    Person,
    SetAside,
)

EXPORT = (Path(__file__).parent / "exports" / "coldfront.json").read_bytes()
OPTIONS = ImportOptions(
    ours=["a100"], classes={"GPU cluster A100": "a100"}, teams={"project.project 3": "qgp-2"}, until=date(2027, 3, 31)
)
QGP = "angular-momentum-in-qgp-holography"
CARL, CHARLES = Person("cgray@example.org", "Carl Gray"), Person("csimmons@example.org", "Charles Simmons")


def read(options: ImportOptions = OPTIONS) -> ImportPlan:
    return coldfront.read(EXPORT, options)


def aside(plan: ImportPlan) -> dict[str, SetAside]:
    return {row.place: row for row in plan.rows if isinstance(row, SetAside)}


def test_active_projects_people_and_allocations_are_rows() -> None:
    assert [row for row in read().rows if not isinstance(row, SetAside)] == [
        ImportedTeam("project.project 1", QGP, "Angular momentum in QGP holography", (CARL,)),
        ImportedTeam("project.project 3", "qgp-2", "Angular Momentum in QGP Holography", (CHARLES,)),
        ImportedMember("project.projectuser 1", QGP, CARL, "owner"),
        ImportedMember("project.projectuser 2", QGP, CHARLES, "manager"),
        ImportedMember("project.projectuser 3", QGP, Person("mlopez@example.org", "Michelle López"), "member"),
        ImportedGrant("allocation.allocation 1", QGP, "a100", 4, end_of_day(date(2027, 6, 30))),
    ]


def test_what_is_not_active_is_left_out_and_says_so() -> None:
    found = aside(read())
    left_out = {place: row.text for place, row in found.items() if row.outcome == Outcome.LEFT_OUT}
    assert left_out == {
        "project.project 2": "The project is Archived.",
        "project.projectuser 4": "The person is Removed in the project.",
        "project.projectuser 5": "Its project is not imported.",
        "allocation.allocation 3": "The allocation is Expired.",
    }


def test_a_resource_that_is_no_class_is_refused_by_name() -> None:
    row = aside(read())["allocation.allocation 2"]
    assert (row.outcome, row.field) == (Outcome.REFUSED, "class")
    assert "There is no class 'ProjectStorage'" in row.text
    assert "Classes: a100." in row.text


def test_two_projects_do_not_become_one_team() -> None:
    row = aside(read(replace(OPTIONS, teams={})))["project.project 3"]
    assert (row.outcome, row.field) == (Outcome.REFUSED, "team")
    assert f"project.project 1 has the short name {QGP}, too." in row.text
    assert "--team 'project.project 3=short-name'" in row.text


def test_no_password_is_in_the_plan() -> None:
    assert "pbkdf2" not in repr(read())
    assert b"pbkdf2" in EXPORT


def changed(model: str, pk: int, **fields: Any) -> bytes:
    rows = json.loads(EXPORT)
    [row] = [one for one in rows if (one["model"], one["pk"]) == (model, pk)]
    row["fields"].update(fields)
    return json.dumps(rows).encode()


def test_a_title_without_latin_letters_needs_a_short_name() -> None:
    data = changed("project.project", 1, title="量子物理")
    row = aside(coldfront.read(data, OPTIONS))["project.project 1"]
    assert "No short name can be made of '量子物理'" in row.text
    named = replace(OPTIONS, teams={**OPTIONS.teams, "量子物理": "quantum"})
    teams = [row for row in coldfront.read(data, named).rows if isinstance(row, ImportedTeam)]
    assert (teams[0].slug, teams[0].name) == ("quantum", "量子物理")


def test_a_long_title_is_cut_and_says_so() -> None:
    data = changed("project.project", 1, title="A very long title " * 10)
    team = next(row for row in coldfront.read(data, OPTIONS).rows if isinstance(row, ImportedTeam))
    assert len(team.name) <= 80
    assert team.note == " The name is cut to 80 characters."


@pytest.mark.parametrize(
    ("data", "code", "text"),
    [
        (b"{", "not_json", "not valid JSON"),
        (b"[" * 100_000, "not_json", "not valid JSON"),
        (b"{}", "bad_value", "A dump has to be a list of objects."),
        (b"[1]", "bad_value", "A dump has to be a list of objects."),
        (b'[{"model": "auth.user", "pk": 1}]', "bad_value", "model, pk and fields"),
        (b'[{"model": "auth.user", "fields": {}}]', "bad_value", "without --natural-primary"),
        (b"[]", "bad_value", "The dump has no auth.user, "),
    ],
)
def test_a_file_that_is_no_dump_is_refused_whole(data: bytes, code: str, text: str) -> None:
    with pytest.raises(Refused) as refused:
        coldfront.read(data, OPTIONS)
    assert refused.value.code == code
    assert text in str(refused.value)


def test_natural_keys_name_no_person() -> None:
    rows = aside(coldfront.read(changed("project.projectuser", 3, user=["mlopez"]), OPTIONS))
    assert rows["project.projectuser 3"].outcome == Outcome.REFUSED
