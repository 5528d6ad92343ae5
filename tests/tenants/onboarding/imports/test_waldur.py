"""Lists of Waldur's API as a plan. The records are written as its API describes them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from portal.core.errors import Refused
from tenants.core.forms import end_of_day
from tenants.onboarding.imports.sources import waldur
from tenants.onboarding.imports.types import (
    ImportedGrant,
    ImportedMember,
    ImportedTeam,
    ImportOptions,
    Outcome,
    Person,
    SetAside,
)

EXPORT = (Path(__file__).parent / "exports" / "waldur.json").read_bytes()
PROJECT = "project 6f3b2f6f0b0d4c2f8d8e1a2b3c4d5e6f"
OPTIONS = ImportOptions(ours=["a100"], classes={"GPU Kubernetes/gpu_a100": "a100", "GPU Kubernetes/cpu": ""})


def test_projects_permissions_and_limits_are_rows() -> None:
    mari = Person("mari@example.org", "Mari Maasikas")
    assert [row for row in waldur.read(EXPORT, OPTIONS).rows if not isinstance(row, SetAside)] == [
        ImportedTeam(PROJECT, "protein-folding", "Protein folding", (mari,)),
        ImportedMember("user_permissions 1", "protein-folding", mari, "owner"),
        ImportedMember("user_permissions 2", "protein-folding", Person("jaan@example.org", "Jaan Tamm"), "manager"),
        ImportedMember("user_permissions 3", "protein-folding", Person("liis@example.org", "Liis Kask"), "member"),
        # The resource has no end, its project has one.
        ImportedGrant(
            "resource feed0000000040008000000000000001", "protein-folding", "a100", 4, end_of_day(date(2027, 12, 31))
        ),
    ]


def test_what_is_left_out_says_why() -> None:
    rows = [row for row in waldur.read(EXPORT, OPTIONS).rows if isinstance(row, SetAside)]
    assert {row.outcome for row in rows} == {Outcome.LEFT_OUT}
    assert [(row.title, row.text) for row in rows] == [
        ("Closed project", "The project is removed."),
        ("Protein folding left@example.org", "The permission is not active."),
        (
            "University of Tartu support@example.org",
            "The portal has no role like 'CUSTOMER.SUPPORT'. Add the person on the page of the team, if needed.",
        ),
        ("protein-folding GPU Kubernetes/cpu", "--class leaves out 'GPU Kubernetes/cpu'."),
        ("protein-folding GPU Kubernetes/storage_gb", "The limit is 0."),
        ("Protein folding old", "The resource is Terminated."),
    ]


@pytest.mark.parametrize(("amount", "units"), [(b"4.0", 4), (b"4.5", None), (b"true", None), (b"-1", None)])
def test_a_limit_is_a_whole_number(amount: bytes, units: int | None) -> None:
    rows = waldur.read(EXPORT.replace(b'"gpu_a100": 4', b'"gpu_a100": ' + amount), OPTIONS).rows
    assert [row.units for row in rows if isinstance(row, ImportedGrant)] == ([units] if units else [])
    refused = [row.field for row in rows if isinstance(row, SetAside) and row.outcome == Outcome.REFUSED]
    assert refused == ([] if units else ["units"])


def test_a_component_that_is_no_class_is_refused_by_name() -> None:
    rows = waldur.read(EXPORT, replace(OPTIONS, classes={})).rows
    refused = [row for row in rows if isinstance(row, SetAside) and row.outcome == Outcome.REFUSED]
    assert [row.title for row in refused] == [
        "protein-folding GPU Kubernetes/gpu_a100",
        "protein-folding GPU Kubernetes/cpu",
    ]
    assert all("Classes: a100." in row.text for row in refused)


def test_a_project_without_an_owner_gets_the_one_that_is_named() -> None:
    data = EXPORT.replace(b"CUSTOMER.OWNER", b"CUSTOMER.MANAGER")
    [team] = [row for row in waldur.read(data, OPTIONS).rows if isinstance(row, ImportedTeam)]
    assert team.owners == ()
    named = replace(OPTIONS, owner="Olga@example.org")
    [team] = [row for row in waldur.read(data, named).rows if isinstance(row, ImportedTeam)]
    assert team.owners == (Person("olga@example.org"),)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"[]", "one object with the lists projects, user_permissions, resources."),
        (b'{"projects": []}', "Missing: user_permissions, resources."),
        (b'{"projects": {}, "user_permissions": [], "resources": []}', "projects has to be a list of objects."),
        (b'{"projects": [], "user_permissions": [], "resources": []}', "The file contains no teams"),
    ],
)
def test_a_file_without_the_lists_is_refused_whole(data: bytes, text: str) -> None:
    with pytest.raises(Refused) as refused:
        waldur.read(data, OPTIONS)
    assert refused.value.code == "bad_value"
    assert text in str(refused.value)
