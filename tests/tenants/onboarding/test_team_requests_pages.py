"""The start page of a user without a team, the approver's inbox and the page of a team request: what each user sees."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from catalog.models import GpuClass
from tenants.core import queries as core_queries
from tenants.grants import queries
from tenants.models import Bundle, TeamRequest, Tenant
from tenants.onboarding.bundles import actions as bundle_actions
from tests.support.http.pages import ask, page
from tests.support.rows import make


def as_(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def text(response: Any) -> str:
    return " ".join(response.content.decode().split())


@pytest.fixture
def limited(a100: GpuClass) -> GpuClass:
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8)
    a100.refresh_from_db()
    return a100


@pytest.fixture
def bundle(limited: GpuClass, olga: User) -> Bundle:
    return bundle_actions.put_bundle(name="Training", days=60, lines=[(limited.slug, 2)], by=page(olga))


@pytest.fixture
def typed(unique: str) -> dict[str, str]:
    return {"name": "Robots", "slug": f"robots-{unique}", "purpose": "Grasping from video.", "bundle": "Training"}


@pytest.fixture
def asked(bundle: Bundle, dana: User, charlie: User, typed: dict[str, str]) -> TeamRequest:
    return ask(charlie, **typed)


def test_from_the_start_to_a_team_that_holds_its_bundle(
    bundle: Bundle, limited: GpuClass, dana: User, charlie: User, typed: dict[str, str]
) -> None:
    start = text(as_(charlie).get("/start"))
    assert "Request a team" in start
    assert "Training: 2 GPUs of A100 80GB whole card, for 60 days" in start
    assert "Approvers are notified by email" in text(as_(charlie).post("/start/team-requests", typed, follow=True))
    waiting = text(as_(charlie).get("/start"))
    assert "Withdraw" in waiting
    assert "Request team" not in waiting
    inbox = text(as_(dana).get("/inbox"))
    row = TeamRequest.objects.get()
    assert "New teams" in inbox
    assert f"/team-requests/{row.pk}" in inbox
    shown = text(as_(dana).get(f"/team-requests/{row.pk}"))
    assert "Grasping from video." in shown
    assert "0 of 8 allocated to teams" in shown
    assert "Within the allocation limit" in shown
    said = {"decision": "approve", "slug": row.slug, f"units-{limited.slug}": "2", "reason": ""}
    decided = text(as_(dana).post(f"/team-requests/{row.pk}/decide", said, follow=True))
    assert "Decision saved. Charlie is notified." in decided
    assert f"/teams/{row.slug}" in decided
    assert "Create team" not in decided
    assert list(queries.units_in_force(Tenant.objects.get().pk, core_queries.database_now()).values()) == [2]
    assert "New teams" not in text(as_(dana).get("/inbox"))
    assert "Robots" in text(as_(charlie).get(f"/teams/{row.slug}/members"))


def test_what_was_typed_stays_when_asking_is_refused(
    team_a: Tenant, bundle: Bundle, charlie: User, typed: dict[str, str]
) -> None:
    refused = as_(charlie).post("/start/team-requests", {**typed, "slug": "team-a"})
    assert refused.status_code == 422
    assert "A team with this short name already exists" in text(refused)
    assert "Grasping from video." in text(refused)
    missing = as_(charlie).post("/start/team-requests", {**typed, "bundle": ""})
    assert missing.status_code == 422
    assert not TeamRequest.objects.exists()


def test_without_bundles_the_card_says_so(limited: GpuClass, charlie: User) -> None:
    start = text(as_(charlie).get("/start"))
    assert "No quota bundle is available for new teams yet." in start
    assert "Request team" not in start


def test_a_refused_decision_stays_on_the_page(asked: TeamRequest, limited: GpuClass, dana: User) -> None:
    decide = lambda **said: as_(dana).post(  # noqa: E731
        f"/team-requests/{asked.pk}/decide",
        {"decision": "approve", "slug": asked.slug, f"units-{limited.slug}": "2", "reason": "", **said},
    )
    less = decide(**{f"units-{limited.slug}": "1"})
    assert less.status_code == 422
    assert "why you approve less than requested" in text(less)
    assert f'value="1" required aria-invalid="true" aria-describedby="line-{limited.slug}-error"' in text(less)
    more = decide(**{f"units-{limited.slug}": "9", "reason": "Soon more."})
    assert "This exceeds the allocation limit of A100 80GB whole card (8) by 1" in text(more)
    assert 'name="over_promise"' in text(more)
    assert "is reserved for the system" in text(decide(slug="kube-x"))
    assert "Enter a comment of 1 to 500 characters" in text(decide(decision="deny"))
    assert decide(**{f"units-{limited.slug}": "many"}).status_code == 422
    assert not Tenant.objects.exists()
    said = {f"units-{limited.slug}": "9", "reason": "Soon more.", "over_promise": "yes"}
    assert decide(**said).status_code == 302
    assert Tenant.objects.get().slug == asked.slug


def test_a_no_stands_on_the_start_page(asked: TeamRequest, dana: User, charlie: User, limited: GpuClass) -> None:
    said = {"decision": "deny", "slug": "", f"units-{limited.slug}": "2", "reason": "Join Vision instead."}
    as_(dana).post(f"/team-requests/{asked.pk}/decide", said)
    start = text(as_(charlie).get("/start"))
    assert "Join Vision instead." in start
    assert "Request team" in start


def test_strangers_find_nothing_and_staff_see_why_not(
    asked: TeamRequest, limited: GpuClass, alice: User, olga: User, charlie: User
) -> None:
    address = f"/team-requests/{asked.pk}"
    assert as_(alice).get(address).status_code == 404
    assert as_(alice).post(f"{address}/decide", {}).status_code == 404
    assert as_(alice).post(f"/start/team-requests/{asked.pk}/withdraw").status_code == 404
    for reader in (charlie, olga):
        assert as_(reader).get(address).status_code == 200
        assert "Create team" not in text(as_(reader).get(address))
        assert as_(reader).post(f"{address}/decide", {"decision": "deny"}).status_code == 403
    make.approver("One", gpu_class=make.gpu_class(limited.cluster, slug=f"{limited.slug}-b", name="Another"))
    one = User.objects.get(name="One")
    assert "Other approvers decide this" in text(as_(one).get(address))
    assert "New teams" not in text(as_(one).get("/inbox"))
    assert as_(charlie).post(f"/start/team-requests/{asked.pk}/withdraw", follow=True).status_code == 200
    assert TeamRequest.objects.get().state == "withdrawn"


def test_teams_without_an_owner_are_named_in_the_inbox(team_a: Tenant, alice: User, dana: User) -> None:
    assert "No owner:" not in text(as_(dana).get("/inbox"))
    User.objects.filter(pk=alice.pk).update(is_active=False)
    inbox = text(as_(dana).get("/inbox"))
    assert "No owner:" in inbox
    assert '<a href="/teams/team-a/members">Team A</a>' in inbox


@pytest.mark.parametrize("address", ["/start", "/inbox"])
def test_pages_cost_the_same_with_one_request_and_with_many(
    asked: TeamRequest, dana: User, address: str, django_assert_max_num_queries: Any
) -> None:
    client = as_(dana)
    with django_assert_max_num_queries(60) as few:
        client.get(address)
    for number in range(5):
        bundle_actions.put_bundle(
            name=f"Bundle {number}",
            lines=[(line.gpu_class.slug, 1) for line in asked.bundle.lines.all()],
            by=page(make.user(f"Operator{number}", roles=["operator"])),  # type: ignore[list-item]
        )
        ask(make.user(f"New{number}"), slug=f"new-{number}", bundle=f"Bundle {number}")
    with django_assert_max_num_queries(60) as many:
        client.get(address)
    assert len(many) == len(few)


def test_staff_edit_bundles_in_the_admin(bundle: Bundle, limited: GpuClass, olga: User, dana: User) -> None:
    client = make.administrator(Client(), olga)
    new, old = "/admin/tenants/bundle/add/", f"/admin/tenants/bundle/{bundle.pk}/change/"
    typed = {"name": "Inference", "summary": "", "days": "30", "position": "20", "is_open": "on"}
    wrong = client.post(new, {**typed, "lines": f"{limited.slug}: 3"})
    assert "Enter lines such as: a100-sxm4-80gb = 2" in text(wrong)
    assert "There is no class" in text(client.post(new, {**typed, "lines": "moon = 3"}))
    assert client.post(new, {**typed, "lines": f"{limited.slug} = 3"}).status_code == 302
    made = Bundle.objects.get(name="Inference")
    assert [(line.gpu_class, line.units) for line in made.lines.all()] == [(limited, 3)]
    assert f"{limited.slug} = 2" in text(client.get(old))
    again = client.post(old, {**typed, "lines": f"{limited.slug} = 1"})
    assert "A bundle with this name already exists." in text(again)
    client.post(old, {**typed, "name": "Training", "is_open": "", "lines": f"{limited.slug} = 1"})
    bundle.refresh_from_db()
    assert (bundle.is_open, bundle.days, bundle.lines.get().units) == (False, 30, 1)
    assert as_(dana).get(old, follow=True).status_code == 404
