"""The page of an import: a preview of a file, then exactly what the preview showed."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from accounts.models import Role, User
from catalog.models import GpuClass
from tenants.models import ApproverFor, Grant, Tenant
from tenants.onboarding.imports.forms import PAGE_BYTES_MAX, PAGE_ROWS_MAX
from tests.support.rows import make

EXPORTS = Path(__file__).parent / "exports"
ADDRESS = "/operators/teams/import"
HEADER = "kind,team,name,email,role,class,units,until\n"
NEXT_YEAR = timezone.localdate().year + 1
TEXT = HEADER + f"team,vision,Vision,ada@example.org,,,,\nquota,vision,,,,theirs,4,{NEXT_YEAR}-06-30\n"


@pytest.fixture
def mover(a100: GpuClass, client: Client) -> User:
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8)
    found = make.user("Mover", roles=[Role.ADMIN, Role.APPROVER])
    ApproverFor.objects.create(user=found, gpu_class=None)
    make.user("Ada")
    make.administrator(client, found)
    return found


def upload(client: Client, data: bytes | str, **fields: Any) -> HttpResponse:
    content = data.encode() if isinstance(data, str) else data
    sent = {"source": "csv", "go": "preview", "file": SimpleUploadedFile("export", content), **fields}
    return client.post(ADDRESS, sent)  # type: ignore[return-value]


def page(answer: HttpResponse) -> str:
    return unescape(answer.content.decode())


def confirm(client: Client, preview: HttpResponse, **fields: Any) -> HttpResponse:
    """Sends what the form of the preview contains, as a browser does: without a file, and with its line breaks."""
    html = preview.content.decode()
    hidden = {name: unescape(re.search(rf'name="{name}" value="([^"]*)"', html)[1]) for name in ("text", "seen")}  # type: ignore[index]
    hidden["text"] = hidden["text"].replace("\n", "\r\n")
    return client.post(ADDRESS, {"source": "csv", "go": "import", **hidden, **fields})  # type: ignore[return-value]


def test_a_preview_changes_nothing_and_the_import_does_what_it_showed(
    mover: User, a100: GpuClass, client: Client
) -> None:
    mapped = {"classes": f"theirs={a100.slug}\r\nold="}
    preview = upload(client, "\ufeff" + TEXT, **mapped)
    told = page(preview)
    assert preview.status_code == 200
    assert "2 will create." in told
    assert f"4 of {a100.name} until {NEXT_YEAR}-06-30." in told
    assert "Import as shown" in told
    assert not Tenant.objects.exists()
    done = page(confirm(client, preview, **mapped))
    assert "2 created." in done
    assert "Import as shown" not in done
    assert [team.slug for team in Tenant.objects.all()] == ["vision"]
    assert Grant.objects.get().units == 4
    assert "2 exists, unchanged." in page(upload(client, TEXT, **mapped))


def test_other_than_the_preview_is_not_done(mover: User, a100: GpuClass, client: Client) -> None:
    """Whether the options were changed after the preview, or the portal."""
    preview = upload(client, TEXT, classes=f"theirs={a100.slug}")
    told = page(confirm(client, preview, classes="theirs="))
    assert "Nothing was changed." in told
    assert "1 will create, 1 left out." in told
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=2)
    told = page(confirm(client, preview, classes=f"theirs={a100.slug}"))
    assert "Nothing was changed." in told
    assert "1 will create, 1 refused." in told
    assert not Tenant.objects.exists()


def test_a_document_in_json_survives_the_preview(mover: User, a100: GpuClass, client: Client) -> None:
    data = (EXPORTS / "jupyterhub.json").read_bytes()
    fields = {
        "source": "jupyterhub",
        "domain": "example.org",
        "into": "vision-lab",
        "owner": "ada@example.org",
        "teams": "研究=research",
        "namespace": "hub",
    }
    preview = upload(client, data, **fields)
    # Ada owns a team in which the export has her as a member.
    rest = "1 differs, unchanged, 2 kept where it is."
    assert f"5 will create, {rest}" in page(preview)
    assert f"5 created, {rest}" in page(confirm(client, preview, **fields))
    assert [team.slug for team in Tenant.objects.all()] == ["research", "vision-lab"]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (TEXT + "team,x,X,ada@example.org,,,,\n" * PAGE_ROWS_MAX, f"the page takes {PAGE_ROWS_MAX}. Use manage.py"),
        ("x" * (PAGE_BYTES_MAX + 1), "The file is larger than 512 KiB. Use manage.py import_teams."),
        ("team,name\n", "The first line has to be kind,team,name,"),
        (b"\xff\xfe", "Line 1 is not UTF-8."),
    ],
    ids=["rows", "bytes", "header", "encoding"],
)
def test_a_file_that_is_refused_says_why(mover: User, client: Client, data: bytes | str, text: str) -> None:
    answer = upload(client, data)
    assert answer.status_code == 422
    assert text in page(answer)


def test_a_form_without_a_file_or_with_wrong_lines_says_so(mover: User, client: Client) -> None:
    answer: Any = client.post(ADDRESS, {"source": "csv", "go": "preview"})
    assert answer.status_code == 422
    assert "Choose the file with the export." in page(answer)
    answer = upload(client, TEXT, classes="a100")
    assert answer.status_code == 422
    assert "'a100' is not valid. Write THEIRS=OURS." in page(answer)


def test_texts_of_the_file_are_text(mover: User, client: Client) -> None:
    answer = upload(client, HEADER + "team,<b>x</b>,<script>alert(1)</script>,ada@example.org,,,,\n")
    html = answer.content.decode()
    assert "<b>x" not in html
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)" in html


def test_only_operators_with_a_second_factor_see_it(mover: User, bob: User, client: Client) -> None:
    assert client.get(ADDRESS).status_code == 200
    assert ADDRESS in page(client.get("/operators/teams"))  # type: ignore[arg-type]
    client.force_login(bob)
    assert client.get(ADDRESS).status_code == 404
    client.force_login(make.user("Fresh", roles=[Role.OPERATOR]))
    assert client.get(ADDRESS).status_code == 302
    client.force_login(make.user("Auditor", roles=[Role.AUDITOR]))
    assert client.get(ADDRESS).status_code == 404
    assert ADDRESS not in page(client.get("/operators/teams"))  # type: ignore[arg-type]
