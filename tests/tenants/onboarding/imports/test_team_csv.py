"""The portal's own CSV as a plan: what spreadsheets do to it, and the line, field and way out of what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from portal.core.errors import Refused
from tenants.core.forms import end_of_day
from tenants.onboarding.imports.sources import team_csv
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
    SetAside,
)

EXPORT = (Path(__file__).parent / "exports" / "teams.csv").read_bytes()
HEADER = "kind,team,name,email,role,class,units,until\n"
OPTIONS = ImportOptions(ours=["a100", "storage"])


def read(text: str, options: ImportOptions = OPTIONS) -> ImportPlan:
    return team_csv.read((HEADER + text).encode(), options)


def only(plan: ImportPlan) -> SetAside:
    [row] = plan.rows
    assert isinstance(row, SetAside)
    return row


def test_each_kind_of_row() -> None:
    plan = team_csv.read(EXPORT, OPTIONS)
    assert plan.source == "CSV"
    assert plan.rows == (
        ImportedTeam("line 2", "vision", "Computer Vision Lab", (Person("ada@example.org"),)),
        ImportedTeam("line 3", "nlp", "Sprachtechnologie – Zürich", (Person("grace@example.org"),)),
        ImportedMember("line 4", "vision", Person("edsger@example.org", "Edsger Dijkstra"), "member"),
        ImportedMember("line 5", "vision", Person("barbara@example.org", "Barbara Liskov"), "manager"),
        ImportedMember("line 6", "nlp", Person("taro@example.org", "山田 太郎"), "viewer"),
        ImportedGrant("line 7", "vision", "a100", 4, end_of_day(date(2027, 6, 30))),
        ImportedGrant("line 8", "nlp", "a100", 2, end_of_day(date(2027, 6, 30))),
    )


@pytest.mark.parametrize(
    "saved",
    [
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.replace(b",", b";"),
        lambda data: b"\xef\xbb\xbf" + data.replace(b",", b";").replace(b"\n", b"\r\n"),
    ],
    ids=["byte order mark", "CRLF", "semicolons", "all of them"],
)
def test_what_spreadsheets_save_is_the_same_plan(saved: Callable[[bytes], bytes]) -> None:
    assert team_csv.read(saved(EXPORT), OPTIONS) == team_csv.read(EXPORT, OPTIONS)


def test_lines_are_counted_as_an_editor_counts_them() -> None:
    plan = read('team,a,"A name\nin two lines",ada@example.org,,,,\n\n,,,,,,,\nmember,a,,bob@example.org,,,,\n')
    assert [row.place for row in plan.rows] == ["line 2", "line 6"]
    # The name as the portal stores it, so that a second import finds it unchanged.
    assert isinstance(plan.rows[0], ImportedTeam)
    assert plan.rows[0].name == "A name in two lines"


@pytest.mark.parametrize(
    ("line", "field", "text"),
    [
        ("person,a,,,,,,", "kind", "'person' is not a kind of row. Use team, member, quota."),
        ("member,,,bob@example.org,,,,", "team", "Enter the short name of the team."),
        ("member,a,,,,,,", "email", "This person has no email address."),
        ("member,a,,bob@example.org,boss,,,", "role", "There is no role 'boss'. Use one of owner, manager, "),
        ("quota,a,,,,h100,1,2027-06-30", "class", "--class 'h100=CLASS', or --class 'h100=' to leave it out. Classes: "
         "a100, storage."),
        ("quota,a,,,,a100,0,2027-06-30", "units", "'0' is not a number of units. Enter a whole number from 1."),
        ("quota,a,,,,a100,-1,2027-06-30", "units", "'-1' is not a number of units."),
        ("quota,a,,,,a100,1.5,2027-06-30", "units", "'1.5' is not a number of units."),
        ("quota,a,,,,a100,4,30.06.2027", "until", "'30.06.2027' is not a date. Give the last day"),
        ("quota,a,,,,a100,4,", "until", "--until 2027-03-31"),
        ("member,a,=HYPERLINK(1),bob@example.org,,,,", "name", "begins like a formula of a spreadsheet. Remove '='."),
        ("team,a,@SUM(A1),bob@example.org,,,,", "name", "begins like a formula of a spreadsheet. Remove '@'."),
        ("member,a,,=1+1@example.org,,,,", "email", "begins like a formula of a spreadsheet."),
        ("member,a,B\u202eob,bob@example.org,,,,", "name", "Character 2 is U+202E"),
        ("member,a,Bob,bob@example.org", "", "This line has 4 cells instead of 8: kind, team, "),
    ],
)  # fmt: skip
def test_a_refused_row_has_its_line_its_field_and_the_way_out(line: str, field: str, text: str) -> None:
    row = only(read(line + "\n"))
    assert (row.place, row.outcome, row.field) == ("line 2", Outcome.REFUSED, field)
    assert text in row.text


def test_a_class_is_named_as_ours_or_left_out() -> None:
    lines = "quota,a,,,,h100,2,\nquota,a,,,,old,9,\n"
    options = replace(OPTIONS, classes={"h100": "a100", "old": ""}, until=date(2027, 3, 31))
    first, second = read(lines, options).rows
    assert first == ImportedGrant("line 2", "a", "a100", 2, end_of_day(date(2027, 3, 31)))
    assert isinstance(second, SetAside)
    assert (second.outcome, second.text) == (Outcome.LEFT_OUT, "--class leaves out 'old'.")


def test_two_totals_of_a_class_are_refused_and_the_same_row_twice_is_not() -> None:
    line = "quota,a,,,,a100,2,2027-06-30\n"
    first, same, other = read(line + line + "quota,a,,,,a100,3,2027-06-30\n").rows
    assert isinstance(first, ImportedGrant)
    assert isinstance(same, ImportedGrant)
    assert isinstance(other, SetAside)
    assert other.text.startswith("line 2 gives a 2 of a100 until 2027-06-30; this row says 3 until 2027-06-30.")


@pytest.mark.parametrize(
    ("data", "code", "text"),
    [
        (b"team,name\n", "bad_value", "The first line has to be kind,team,name,email,role,class,units,until; it is "),
        (b"", "bad_value", "The file contains no teams"),
        (HEADER.encode(), "bad_value", "The file contains no teams, members or quota."),
        (HEADER.encode() + b"team,a,Z\xfcrich,,,,,\n", "bad_value", "Line 2 is not UTF-8."),
        (HEADER.encode() + b'team,a,"open,,,,,\n', "bad_value", "Line 2 is not valid CSV"),
        (b"x" * (FILE_BYTES_MAX + 1), "too_large", "Import it in parts."),
        (HEADER.encode() + b"member,a,,b@example.org,,,,\n" * (ROWS_MAX + 1), "too_large", "the limit is 2,000"),
    ],
    ids=["header", "empty", "no rows", "encoding", "quote", "bytes", "rows"],
)
def test_a_file_that_is_no_such_export_is_refused_whole(data: bytes, code: str, text: str) -> None:
    with pytest.raises(Refused) as refused:
        team_csv.read(data, OPTIONS)
    assert refused.value.code == code
    assert text in str(refused.value)
