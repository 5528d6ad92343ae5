"""For one user and one class, the card, the page and the API give the same answer."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from desk.catalog.cards import ClassCard, class_cards
from desk.catalog.queries import catalog_data
from desk.classes.queries import ClassPage, class_page, visible_class
from tenants.models import ClassAccess, Membership, Tenant
from tests.support.rows import make

pytestmark = pytest.mark.django_db


def card_and_page(user: User, slug: str) -> tuple[ClassCard, ClassPage]:
    by = Actor(user, "page")
    card = next(one for one in class_cards(catalog_data(by)) if one.slug == slug)
    return card, class_page(by, visible_class(by, slug))


@pytest.fixture
def heir(cluster: Cluster, a100: GpuClass) -> GpuClass:
    """A class for named teams only; it is the successor of a retiring class."""
    found = make.gpu_class(cluster, slug="heir", name="H100 whole card", visibility=GpuClass.Visibility.NAMED)
    GpuClass.objects.filter(pk=a100.pk).update(life_cycle="retiring", successor=found)
    return found


@pytest.mark.parametrize(
    ("role", "fields", "units", "launch", "ask"),
    [
        ("owner", {}, 1, "", ""),
        ("owner", {}, 0, "not_granted", ""),
        ("owner", {"life_cycle": "retiring"}, 1, "class_not_active", "class_retiring"),
        ("member", {}, 1, "", "not_allowed"),
        ("viewer", {"life_cycle": "retiring"}, 1, "not_allowed", "not_allowed"),
    ],
)
def test_card_and_page_have_the_same_doors(
    role: str, fields: dict[str, Any], units: int, launch: str, ask: str, team_a: Tenant, a100: GpuClass, bob: User
) -> None:
    Membership.objects.filter(user=bob).update(role=role)
    GpuClass.objects.filter(pk=a100.pk).update(**fields)
    if units:
        make.grant(team_a, a100, units=units)
    card, page = card_and_page(bob, a100.slug)
    assert [one.code if one else "" for one in (card.launch_refusal, card.request_refusal)] == [launch, ask]
    assert (page.doors.launch_refusal, page.doors.request_refusal) == (card.launch_refusal, card.request_refusal)
    assert (page.doors.launch_href, page.doors.request_href) == (card.launch_href, card.request_href)


def test_who_has_no_team_has_no_doors(team_a: Tenant, a100: GpuClass, charlie: User) -> None:
    card, page = card_and_page(charlie, a100.slug)
    assert (card.launch_href, card.launch_refusal, card.request_href, card.request_refusal) == ("", None, "", None)
    assert (page.doors.launch_href, page.doors.launch_refusal) == ("", None)
    assert (page.doors.request_href, page.doors.request_refusal) == ("", None)


def test_a_successor_is_named_to_those_alone_who_may_know_of_it(
    team_a: Tenant, a100: GpuClass, heir: GpuClass, alice: User, charlie: User
) -> None:
    ClassAccess.objects.create(tenant=team_a, gpu_class=heir)
    words = f"{a100.name} is being retired. Running workloads continue."
    for user, sentence, slug in (
        (alice, f"{words} Its successor is H100 whole card.", "heir"),
        (charlie, words, ""),
    ):
        card, page = card_and_page(user, a100.slug)
        client = Client()
        client.force_login(user)
        told = client.get(f"/api/v1/classes/{a100.slug}").json()
        assert (card.notes, page.notes.retiring, told["retirement"]) == ((sentence,), sentence, sentence)
        assert (page.notes.successor_href, told["successor"]) == (f"/catalog/{slug}" if slug else "", slug)


def test_the_form_that_asks_for_units_names_no_other_successor_than_the_page(
    team_a: Tenant, a100: GpuClass, heir: GpuClass, alice: User
) -> None:
    client = Client()
    client.force_login(alice)
    form = f"{reverse('request-new', args=[team_a.slug])}?class={a100.slug}"
    assert "is being retired. Running workloads continue." in client.get(form).text
    assert "H100 whole card" not in client.get(form).text
    ClassAccess.objects.create(tenant=team_a, gpu_class=heir)
    assert "Its successor is H100 whole card." in client.get(form).text
