"""Holding, retiring, access and manual proposals: pages of the admin site that call the same actions."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from accounts.models import Event, Role, User
from catalog.models import DismissedProposal, GpuClass
from cluster.models import Cluster
from tenants.models import ClassAccess, Tenant
from tests.support.rows import make, mirrored

CLASSES = "/admin/catalog/gpuclass/"


@pytest.fixture
def staff(olga: User) -> Client:
    client = Client()
    make.administrator(client, olga)
    return client


def test_a_class_is_held_and_released_by_hand(staff: Client, a100: GpuClass) -> None:
    page = staff.get(f"{CLASSES}{a100.pk}/change/").content.decode()
    assert f"{CLASSES}{a100.pk}/hold/" in page
    assert f"{CLASSES}{a100.pk}/release/" not in page
    ahead = f"{timezone.localtime() + timedelta(days=1):%Y-%m-%dT%H:%M}"
    answer = staff.post(f"{CLASSES}{a100.pk}/hold/", {"reason": "a driver update", "until": ahead})
    assert answer.status_code == 302
    a100.refresh_from_db()
    assert (a100.held_reason, a100.held_until is not None) == ("a driver update", True)
    page = staff.get(f"{CLASSES}{a100.pk}/hold/").content.decode()
    assert "for a driver update; expected to resume at" in page
    assert staff.get(f"{CLASSES}{a100.pk}/release/").status_code == 200
    a100.refresh_from_db()
    assert a100.held_since is not None, "a page that is looked at changes nothing"
    staff.post(f"{CLASSES}{a100.pk}/release/")
    a100.refresh_from_db()
    assert a100.held_since is None
    assert list(Event.objects.order_by("pk").values_list("verb", flat=True)) == ["class.held", "class.released"]


def test_what_is_refused_stands_beside_its_field(staff: Client, a100: GpuClass) -> None:
    page = staff.post(f"{CLASSES}{a100.pk}/retire/", {"successor": "no-such"}).content.decode()
    assert "There is no class of this name; enter an active class of this cluster." in page
    page = staff.post(f"{CLASSES}{a100.pk}/hold/", {"reason": "x", "until": "2020-01-01T00:00"}).content.decode()
    assert "Enter an expected end in the future" in page
    assert not Event.objects.exists()


def test_a_class_is_retired_by_hand(staff: Client, a100: GpuClass) -> None:
    h200 = make.gpu_class(a100.cluster, slug="h200", name="H200", node_labels={"gpu": "h200"})
    staff.post(f"{CLASSES}{a100.pk}/retire/", {"successor": "h200", "message": "Too old"})
    a100.refresh_from_db()
    assert (a100.life_cycle, a100.successor, a100.retiring_message) == ("retiring", h200, "Too old")
    assert 'value="h200"' in staff.get(f"{CLASSES}{a100.pk}/retire/").content.decode()


def test_a_proposal_shows_its_weight_and_why_it_is_not_that_of_the_layout(
    staff: Client, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the simulated hardware the plugin's labels report the layout of each node, and the DRA driver's devices do not
    name their GPU.
    """
    mirrored.hardware_seen(cluster)
    page = staff.get(f"{CLASSES}proposed/").content.decode()
    assert page.count("<td>2/15</td>") == 2
    assert page.count("<td>7/15</td>") == 1
    assert "MIG layout" not in page
    mirrored.hardware_seen(cluster, "dra")
    page = staff.get(f"{CLASSES}proposed/").content.decode()
    unclear = "is not computed from the MIG layout: the layout of dra-mig is unknown, or differs from GPU to GPU."
    assert f"<td>1/7<br>Weight 1/7 {unclear}</td>" in page
    assert f"<td>1/2<br>Weight 1/2 {unclear}</td>" in page
    call_command("catalog", "propose")
    assert f"h100-80gb-hbm3-1g-10gb: Weight 1/7 {unclear}" in capsys.readouterr().err


def test_proposals_are_accepted_edited_dismissed_and_restored_by_hand(staff: Client, cluster: Cluster) -> None:
    assert "so there are no proposals" in staff.get(f"{CLASSES}proposed/").content.decode()
    mirrored.hardware_seen(cluster)
    page = staff.get(f"{CLASSES}proposed/").content.decode()
    assert f"{CLASSES}proposed/" in staff.get(CLASSES).content.decode()
    one, other, third = [part.partition("/")[0] for part in page.split(f"{CLASSES}proposed/")[1:4]]

    staff.post(f"{CLASSES}proposed/{one}/", {"verb": "accept"})
    assert GpuClass.objects.get(slug=one).life_cycle == "active"
    answer = staff.post(f"{CLASSES}proposed/{other}/", {"verb": "edit"})
    draft = GpuClass.objects.get(slug=other)
    assert (draft.life_cycle, answer.headers["Location"]) == ("draft", f"/operators/catalog/classes/{draft.slug}")
    told = staff.post(f"{CLASSES}proposed/{third}/", {"verb": "dismiss", "reason": " "}, follow=True).content.decode()
    assert "for not offering it" in told
    staff.post(f"{CLASSES}proposed/{third}/", {"verb": "dismiss", "reason": "kept for its owners"})
    page = staff.get(f"{CLASSES}proposed/").content.decode()
    assert "kept for its owners" in page
    assert page.count(f"{CLASSES}proposed/{one}/") == page.count(f"{CLASSES}proposed/{other}/") == 0
    told = staff.post(f"{CLASSES}proposed/{third}/", {"verb": "accept"}, follow=True).content.decode()
    assert "is no longer proposed" in told
    staff.post(f"{CLASSES}proposed/{third}/", {"verb": "restore"})
    assert not DismissedProposal.objects.exists()
    assert staff.get(f"{CLASSES}proposed/{third}/").status_code == 405


def test_teams_are_named_by_hand(staff: Client, a100: GpuClass, team_a: Tenant) -> None:
    staff.post("/admin/tenants/classaccess/add/", {"gpu_class": a100.pk, "tenant": team_a.pk})
    row = ClassAccess.objects.get()
    assert (row.tenant, row.gpu_class) == (team_a, a100)
    assert staff.get("/admin/tenants/classaccess/").status_code == 200
    staff.post(f"/admin/tenants/classaccess/{row.pk}/delete/", {"post": "yes"})
    assert not ClassAccess.objects.exists()
    assert list(Event.objects.order_by("pk").values_list("verb", flat=True)) == ["access.allowed", "access.ended"]


@pytest.mark.parametrize("address", ["{pk}/hold/", "{pk}/release/", "{pk}/retire/", "proposed/", "proposed/x/"])
def test_only_operators_come_here(address: str, a100: GpuClass, alice: User) -> None:
    auditor = make.user("Aron", roles=[Role.AUDITOR])
    for who, status in ((auditor, 403), (alice, 404)):
        client = Client()
        make.administrator(client, who)
        for method in (client.get, client.post):
            answer = method(CLASSES + address.format(pk=a100.pk), follow=True)
            assert answer.status_code == status, (who, address)
    assert not Event.objects.exists()
