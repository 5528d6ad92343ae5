"""Terms of a class: each user accepts the current version once, before the first start, by page or API."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass
from portal.core.errors import Refused
from tenants.class_access.actions import accept_terms
from tenants.models import Tenant, TermsAccepted
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Workload

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("granted")]
WORDS = "No personal data on this class."


@pytest.fixture
def with_terms(a100: GpuClass) -> GpuClass:
    a100.terms_version, a100.terms = 2, WORDS
    a100.save(update_fields=["terms_version", "terms"])
    return a100


def accepted() -> list[tuple[str, int]]:
    return list(TermsAccepted.objects.order_by("id").values_list("user__name", "version"))


def verbs() -> list[str]:
    return list(Event.objects.order_by("id").values_list("verb", flat=True))


@pytest.mark.usefixtures("with_terms")
def test_a_launch_without_the_tick_is_refused_and_leaves_nothing(job: LaunchSpec, by_alice: Actor) -> None:
    with pytest.raises(Refused) as refused:
        actions.launch("team-a", job, by=by_alice)
    refusal = refused.value.refusal
    assert (refusal.code, refusal.field, refusal.status) == ("terms_not_accepted", "accept_terms", 422)
    assert "version 2" in refusal.message
    assert "accept_terms: 2" in refusal.message
    assert (accepted(), Workload.objects.count(), Event.objects.count()) == ([], 0, 0)


def test_a_tick_is_written_once_and_asked_of_each_person(
    with_terms: GpuClass, job: LaunchSpec, by_alice: Actor, by_bob: Actor, django_assert_num_queries: Any
) -> None:
    actions.launch("team-a", replace(job, accept_terms=2), by=by_alice)
    assert verbs() == ["terms.accepted", "workload.launched"]
    event = Event.objects.get(verb="terms.accepted")
    assert (event.actor, event.name, event.after) == ("Alice", str(with_terms), {"version": 2})

    with django_assert_num_queries(7):  # as many queries as for a class without terms
        actions.launch("team-a", replace(job, name="again"), by=by_alice)
    with pytest.raises(Refused, match="not accepted"):
        actions.launch("team-a", replace(job, name="other"), by=by_bob)
    assert accepted() == [("Alice", 2)]


def test_a_new_version_asks_again_and_a_tick_for_the_old_one_is_refused(
    with_terms: GpuClass, job: LaunchSpec, by_alice: Actor
) -> None:
    actions.launch("team-a", replace(job, accept_terms=2), by=by_alice)
    GpuClass.objects.filter(pk=with_terms.pk).update(terms_version=3)

    with pytest.raises(Refused, match="Version 2 is not in force"):
        actions.launch("team-a", replace(job, name="again", accept_terms=2), by=by_alice)
    actions.launch("team-a", replace(job, name="again", accept_terms=3), by=by_alice)
    assert accepted() == [("Alice", 2), ("Alice", 3)]


def test_another_run_asks_too(with_terms: GpuClass, job: LaunchSpec, by_alice: Actor, by_bob: Actor) -> None:
    workload = actions.launch("team-a", replace(job, accept_terms=2), by=by_alice)
    Run.objects.filter(workload=workload).update(ended_at=timezone.now(), outcome="failed")

    with pytest.raises(Refused) as refused:
        actions.start("team-a", job.name, by=by_bob)
    assert refused.value.code == "terms_not_accepted"
    actions.start("team-a", job.name, accept_terms=2, by=by_bob)
    assert accepted() == [("Alice", 2), ("Bob", 2)]


def test_the_action_accepts_only_what_is_in_force(with_terms: GpuClass, by_alice: Actor) -> None:
    for version in (0, 1, 3):
        with pytest.raises(Refused) as refused:
            accept_terms(with_terms.pk, version, by=by_alice)
        assert (refused.value.code, refused.value.refusal.status) == ("terms_changed", 409)
    for _ in range(2):
        accept_terms(with_terms.pk, 2, by=by_alice)
    assert (accepted(), verbs()) == ([("Alice", 2)], ["terms.accepted"])


# ---- API and pages ---------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("with_terms")
def test_by_rest_with_the_way_out(job: LaunchSpec, bob: User) -> None:
    by = Actor(user=bob, via="page")
    _row, token = api_token_actions.create_token(name="ci", scopes=["read", "launch"], expires_in_days=1, by=by)

    def send(method: str, path: str, **body: Any) -> Any:
        return getattr(Client(), method)(
            f"/api/v1/workloads{path}",
            data=body,
            content_type="application/json",
            headers={"authorization": f"Bearer {token}"},
        )

    body = {"kind": "job", "gpu_class": job.gpu_class, "image": job.image}
    for answer in (send("put", "/train", **body), send("post", "", name="train", **body)):
        assert answer.status_code == 422
        assert {key: answer.json()[key] for key in ("code", "field")} == {
            "code": "terms_not_accepted",
            "field": "accept_terms",
        }
    assert send("put", "/train", **body, accept_terms=1).json()["code"] == "terms_not_accepted"
    assert send("put", "/train", **body, accept_terms=2).status_code == 201
    assert send("post", "/train/runs").status_code == 201
    assert accepted() == [("Bob", 2)]


def test_a_run_is_started_by_rest_with_the_tick(
    with_terms: GpuClass, job: LaunchSpec, by_alice: Actor, bob: User
) -> None:
    actions.declare("team-a", replace(job, accept_terms=2), by=by_alice)
    _row, token = api_token_actions.create_token(
        name="ci", scopes=["read", "launch"], expires_in_days=1, by=Actor(user=bob, via="page")
    )
    headers = {"authorization": f"Bearer {token}"}
    address = "/api/v1/workloads/train/runs"
    refused = Client().post(address, content_type="application/json", headers=headers)
    assert refused.json()["code"] == "terms_not_accepted"
    answer = Client().post(address, data={"accept_terms": 2}, content_type="application/json", headers=headers)
    assert answer.status_code == 201


def test_on_the_launch_page(with_terms: GpuClass, job: LaunchSpec, alice: User, client: Client) -> None:
    client.force_login(alice)
    page = client.get(f"/teams/team-a/launch?gpu_class={with_terms.slug}").content.decode()
    assert f'name="accept_terms" value="{with_terms.slug}:2"' in page
    assert "Terms of A100 80GB whole card, version 2" in page
    assert WORDS in page

    typed = {"kind": "job", "name": "train", "gpu_class": with_terms.slug, "units": 1, "image": "python"}
    for tick in ("", f"{with_terms.slug}:1", "another:2"):
        answer = client.post("/teams/team-a/launch", {**typed, "accept_terms": tick})
        assert answer.status_code == 422
        assert "You have not accepted the terms" in answer.content.decode()
        assert f'value="{with_terms.slug}:2"' in answer.content.decode()
    # A tick stays when the page is shown again, but only for the same class and version.
    ticked = re.compile(rf'name="accept_terms" value="{with_terms.slug}:2" id="id_accept_terms" checked')
    for tick, is_kept in ((f"{with_terms.slug}:2", True), (f"{with_terms.slug}:1", False)):
        looked = client.post("/teams/team-a/launch", {**typed, "accept_terms": tick, "units": 2, "look": "units"})
        assert bool(ticked.search(looked.content.decode())) is is_kept
    assert client.post("/teams/team-a/launch", {**typed, "accept_terms": f"{with_terms.slug}:2"}).status_code == 302
    assert accepted() == [("Alice", 2)]
    assert "accept_terms" not in client.get("/teams/team-a/launch").content.decode()


def test_on_the_page_of_a_workload_that_is_over(
    with_terms: GpuClass, job: LaunchSpec, by_alice: Actor, bob: User, client: Client
) -> None:
    workload = actions.launch("team-a", replace(job, accept_terms=2), by=by_alice)
    Run.objects.filter(workload=workload).update(ended_at=timezone.now(), outcome="failed")
    client.force_login(bob)
    page = client.get("/teams/team-a/workloads/train").content.decode()
    assert 'name="accept_terms" value="2"' in page
    assert WORDS in page

    assert client.post("/teams/team-a/workloads/train/start", {"accept_terms": "x"}).status_code == 422
    assert client.post("/teams/team-a/workloads/train/start", {"accept_terms": "2"}).status_code == 302
    assert accepted() == [("Alice", 2), ("Bob", 2)]


def test_a_class_without_terms_asks_nothing(granted: Tenant, job: LaunchSpec, by_alice: Actor) -> None:
    actions.launch("team-a", replace(job, accept_terms=7), by=by_alice)
    assert (accepted(), verbs()) == ([], ["workload.launched"])
