"""`manage.py import_teams`: a dry run by default, the same rows with --apply, and a report for people and programs."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.models import Role, User
from catalog.models import GpuClass
from tenants.models import ApproverFor, Grant, Membership, Tenant
from tests.support.rows import make

EXPORTS = Path(__file__).parent / "exports"
NEXT_YEAR = timezone.localdate().year + 1
HEADER = "kind,team,name,email,role,class,units,until\n"


@pytest.fixture
def mover(a100: GpuClass) -> User:
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8)
    found = make.user("Mover", roles=[Role.ADMIN, Role.APPROVER])
    ApproverFor.objects.create(user=found, gpu_class=None)
    return found


def import_teams(source: str, file: object, *words: str) -> tuple[str, str]:
    """What it printed, and why it failed."""
    out = io.StringIO()
    failed = ""
    try:
        call_command("import_teams", source, str(file), "--as", "mover@example.org", *words, stdout=out)
    except CommandError as error:
        failed = str(error)
    return out.getvalue(), failed


def export(name: str, folder: Path) -> Path:
    """Quota ends next year, whenever the test runs."""
    found = folder / name
    found.write_text((EXPORTS / name).read_text().replace("2027-", f"{NEXT_YEAR}-"))
    return found


def test_a_dry_run_then_the_import(mover: User, a100: GpuClass, tmp_path: Path) -> None:
    make.user("Ada")
    make.user("Grace")
    file = export("teams.csv", tmp_path)
    words = ("--class", f"a100={a100.slug}")
    told, error = import_teams("csv", file, *words)
    assert error == ""
    assert "line 2: team vision: will create: The team Computer Vision Lab, owned by ada@example.org.\n" in told
    assert f"line 7: quota vision {a100.slug}: will create: 4 of {a100.name} until {NEXT_YEAR}-06-30.\n" in told
    assert "line 6: member nlp taro@example.org: will create: An invitation with the role viewer" in told
    assert told.endswith("7 will create.\nDry run: nothing was changed. --apply carries it out.\n")
    assert not Tenant.objects.exists()
    told, error = import_teams("csv", file, *words, "--apply")
    assert error == ""
    assert told.endswith("7 created.\n")
    assert Tenant.objects.get(slug="nlp").name == "Sprachtechnologie – Zürich"
    assert sorted(Grant.objects.values_list("units", flat=True)) == [2, 4]
    told, error = import_teams("csv", file, *words, "--apply")
    assert told.endswith("7 exists, unchanged.\n")


def test_refused_rows_fail_the_command_after_the_others(mover: User, a100: GpuClass, tmp_path: Path) -> None:
    make.user("Ada")
    file = tmp_path / "teams.csv"
    file.write_text(HEADER + "team,a,A,ada@example.org,,,,\nquota,a,,,,h200,1,\nteam,b,B,ada@example.org,,,,\n")
    told, error = import_teams("csv", file, "--apply")
    assert error == "1 of 3 rows were refused. The others are not affected."
    assert "line 3: quota a h200: refused: class: There is no class 'h200'." in told
    assert f"Classes: {a100.slug}." in told
    assert [team.slug for team in Tenant.objects.all()] == ["a", "b"]


def test_the_report_as_json(mover: User, a100: GpuClass, tmp_path: Path) -> None:
    make.user("CGray")
    words = (
        "--class",
        f"GPU cluster A100={a100.slug}",
        "--team",
        "project.project 3=qgp-2",
        "--until",
        f"{NEXT_YEAR}-03-31",
    )
    told, error = import_teams("coldfront", export("coldfront.json", tmp_path), *words, "--json", "--apply")
    assert error == "2 of 11 rows were refused. The others are not affected."
    report = json.loads(told)
    assert report["applied"] is True
    assert report["counts"] == {"create": 4, "exists": 1, "differs": 0, "refused": 2, "left_out": 4, "kept": 0}
    rows: dict[str, Any] = {row["place"]: row for row in report["rows"]}
    assert rows["project.project 3"] == {
        "place": "project.project 3",
        "kind": "team",
        "title": "qgp-2",
        "outcome": "refused",
        "text": "'csimmons@example.org' has no account, and a team needs an owner with one. Create it on the page "
        "People or with --add-accounts, or name another owner: --owner EMAIL.",
        "field": "owner",
        "code": "unknown_person",
    }
    assert Membership.objects.get().user.email == "cgray@example.org"
    assert Grant.objects.get().units == 4


def test_the_other_sources(mover: User, a100: GpuClass, tmp_path: Path) -> None:
    words = ("--class", f"GPU Kubernetes/gpu_a100={a100.slug}", "--class", "GPU Kubernetes/cpu=", "--add-accounts")
    told, error = import_teams("waldur", export("waldur.json", tmp_path), *words, "--apply")
    assert error == ""
    assert f"quota protein-folding {a100.slug}: created: 4 of {a100.name} until {NEXT_YEAR}-12-31." in told
    words = (
        "--owner",
        "mari@example.org",
        "--domain",
        "example.org",
        "--into",
        "vision-lab",
        "--team",
        "研究=research",
    )
    told, error = import_teams("jupyterhub", EXPORTS / "jupyterhub.json", *words, "--namespace", "jhub", "--apply")
    assert error == ""
    assert "home ada@example.org: kept where it is: hub/claim-ada-40example-2eorg." in told
    assert "2 kept where it is." in told
    assert [team.slug for team in Tenant.objects.all()] == ["protein-folding", "research", "vision-lab"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--class", "a100"), "--class: 'a100' is not valid. Write THEIRS=OURS."),
        (("--team", "=b"), "--team: '=b' is not valid. Write THEIRS=OURS."),
        (("--until", "soon"), "--until 'soon' is not a date. Use the format 2027-03-31."),
        (("--as", "nobody@example.org"), "--as: no active account has the address 'nobody@example.org'."),
    ],
)
def test_wrong_words_are_refused(mover: User, words: tuple[str, ...], sentence: str) -> None:
    assert import_teams("csv", EXPORTS / "teams.csv", *words) == ("", sentence)


def test_a_file_that_cannot_be_read(mover: User, tmp_path: Path) -> None:
    assert import_teams("csv", tmp_path / "none.csv")[1].startswith(f"{tmp_path / 'none.csv'} cannot be read: ")
    large = tmp_path / "large.csv"
    large.write_bytes(b"x" * (6 * 2**20))
    assert import_teams("csv", large)[1].endswith("Import it in parts.")
