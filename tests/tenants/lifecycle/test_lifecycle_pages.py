"""Pages and API about a team's life cycle: what closing would remove, until when, and what is left."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.reads.namespace_deletion import DeletionBlocker, deletion_blockers
from cluster.reads.observed import Condition
from tenants.lifecycle import actions as lifecycle_actions
from tenants.models import Grant, Namespace, QuotaRequest, Tenant
from tenants.requests import actions
from tenants.requests.types import RequestedLine
from tests.support.http.pages import page
from tests.support.rows import make
from workloads.models import Run, Volume, Workload

DAY = timedelta(days=1)


def text(answer: Any) -> str:
    return " ".join(html.unescape(answer.content.decode()).split())


def signed_in(who: User) -> Client:
    client = Client()
    client.force_login(who)
    return client


@pytest.fixture
def busy(team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, bob: User) -> QuotaRequest:
    """A team with running, waiting and stored things, grants and requests; and some that have ended."""
    GpuClass.objects.update(promise_limit=8)
    now = timezone.now()
    make.grant(team_a, a100, units=2, until=now + 20 * DAY)
    make.grant(team_a, a100, units=1, until=now + 2 * DAY, kind=Grant.Kind.BOOST)
    for name, admitted, ended in (("runs", True, False), ("waits", False, False), ("over", True, True)):
        of = Workload.objects.create(
            tenant=team_a,
            namespace=namespace_a,
            name=name,
            kind="job",
            origin=name,
            gpu_class=a100,
            units=1,
            image="python",
            created_by=bob,
        )
        done = {"ended_at": now, "outcome": "succeeded"} if ended else {}
        at = {"admitted_at": now} if admitted else {}
        spec = {"gpu_class": a100.slug, "units": 1}
        Run.objects.create(workload=of, number=1, spec=spec, requested_by=bob, **at, **done)
    for name, size, goes in (("data", 200, False), ("home", 50, False), ("old", 7, True)):
        asked = {"delete_requested_at": now, "gone_at": now} if goes else {}
        Volume.objects.create(namespace=namespace_a, name=name, size_gib=size, **asked)
    line = RequestedLine(a100.slug, 5, now, now + 9 * DAY)
    return actions.file_request("team-a", lines=[line], justification="More.", by=page(alice))


def test_who_closes_a_team_sees_what_goes(busy: QuotaRequest, a100: GpuClass, olga: User) -> None:
    shown = text(signed_in(olga).get("/teams/team-a/members"))
    assert f"<dt>Running</dt><dd>runs (job, 1 of {a100.slug}, Bob)</dd>" in shown
    assert f"<dt>Queued</dt><dd>waits (job, 1 of {a100.slug}, Bob)</dd>" in shown
    assert "<dt>Volumes</dt><dd>data (200 GiB); home (50 GiB), in total 250 GiB</dd>" in shown
    assert f"2 GPUs of {a100.name}, expires on" in shown
    assert f"<dt>Freed quota</dt><dd>3 of {a100.name}</dd>" in shown
    assert f'<a href="/requests/{busy.pk}">#{busy.pk}</a> (5 of {a100.name})' in shown
    assert 'name="grace_hours" type="number" min="0" max="336" value="24"' in shown
    assert 'name="keep_days" type="number" min="0" max="90" value="30"' in shown


def test_the_api_lists_the_same_and_to_nobody_else(
    busy: QuotaRequest, namespace_a: Namespace, a100: GpuClass, olga: User, alice: User
) -> None:
    body = json.loads(signed_in(olga).get("/api/v1/teams/team-a/namespace").content)
    goes = body["goes"]
    assert [(one["name"], one["who"]) for one in goes["running"]] == [("runs", "Bob")]
    assert [(one["name"], one["units"]) for one in goes["waiting"]] == [("waits", 1)]
    assert goes["volumes"] == [{"name": "data", "size_gib": 200}, {"name": "home", "size_gib": 50}]
    assert [one["units"] for one in goes["grants"]] == [2, 1]
    assert [(one["request"], one["units"]) for one in goes["pending"]] == [(busy.pk, 5)]
    assert (goes["queue"], body["state"], body["stuck"]) == (namespace_a.name, "active", None)
    own = json.loads(signed_in(alice).get("/api/v1/teams/team-a/namespace").content)
    assert own["goes"] is None
    assert {key: own[key] for key in own if key != "goes"} == {key: body[key] for key in body if key != "goes"}
    assert "Everything listed here is deleted" not in text(signed_in(alice).get("/teams/team-a/members"))


def test_a_stranger_learns_nothing(team_a: Tenant, charlie: User) -> None:
    client: Any = signed_in(charlie)
    path = "/api/v1/teams/team-a/namespace"
    answers = [client.get(path), client.patch(path, "{}", content_type="application/json")]
    answers.append(client.post("/api/v1/teams/team-a/grants/1/renew"))
    assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(404, "not_found")}


def test_the_team_reads_until_when(busy: QuotaRequest, namespace_a: Namespace, olga: User, alice: User) -> None:
    row = lifecycle_actions.set_namespace_state(
        namespace_a.pk, to="closed", because="The course is over.", by=page(olga)
    )
    assert row.closes_at is not None
    assert row.volumes_until is not None
    closes, keeps = (timezone.localtime(at) for at in (row.closes_at, row.volumes_until))
    as_alice, as_olga = signed_in(alice), signed_in(olga)
    team = text(as_alice.get("/teams/team-a/members"))
    assert "Being closed: no new workloads start. The course is over." in team.replace("</b>", "")
    assert f"stopped and grants expire on {closes:%-d %b %Y, %H:%M}" in team
    assert f"Deleted with all data on {keeps:%-d %b %Y, %H:%M}" in team
    assert "Resume" not in team
    grants = text(as_alice.get("/teams/team-a/grants"))
    assert f"Workloads are stopped on {closes:%-d %b %Y, %H:%M}" in grants
    assert f"Deleted with all data on {keeps:%-d %b %Y, %H:%M}" in grants
    operator = text(as_olga.get("/teams/team-a/members"))
    assert "Resume" in operator
    assert "Close the team" not in operator

    now = timezone.now()
    Namespace.objects.update(closes_at=now - DAY, volumes_until=now + DAY)
    team = text(as_alice.get("/teams/team-a/members"))
    assert "Closed: no workloads start; running workloads are stopped." in team
    assert "Workloads were stopped and grants expired on" in team
    operator = text(as_olga.get("/teams/team-a/members"))
    assert "and cannot be resumed" in operator
    assert "Resume</button>" not in operator
    Namespace.objects.update(gone_at=now)
    assert "All objects deleted on" in text(as_alice.get("/teams/team-a/members"))


def test_the_api_says_each_state(namespace_a: Namespace, olga: User) -> None:
    client = signed_in(olga)

    def state() -> tuple[str, str]:
        body = json.loads(client.get("/api/v1/teams/team-a/namespace").content)
        return body["state"], body["because"]

    assert state() == ("active", "")
    for to, expected in (("suspended", "suspended"), ("closed", "closing")):
        lifecycle_actions.set_namespace_state(namespace_a.pk, to=to, because=f"It is {to}.", by=page(olga))
        assert state() == (expected, f"It is {to}.")
    now = timezone.now()
    Namespace.objects.update(closes_at=now, volumes_until=now)
    assert state() == ("closed", "It is closed.")


def test_it_takes_the_same_number_of_queries_however_much_goes(
    busy: QuotaRequest, namespace_a: Namespace, olga: User, django_assert_num_queries: Callable[..., Any]
) -> None:
    client = signed_in(olga)
    client.get("/api/v1/teams/team-a/namespace")
    with django_assert_num_queries(13):
        client.get("/api/v1/teams/team-a/namespace")
    for number in range(20):
        Volume.objects.create(namespace=namespace_a, name=f"more-{number}", size_gib=1)
    with django_assert_num_queries(13):
        client.get("/api/v1/teams/team-a/namespace")


# ---- namespaces that cannot be deleted ---------------------------------------------------------------------------


def condition(type: str, message: str, status: str = "True") -> Condition:
    return Condition(type, status, "SomeReason", message, None)


LEFT = "Some resources are remaining: configmaps. has 1 resource instances, jobs.batch has 2 resource instances"
HELD = (
    "Some content in the namespace has finalizers remaining: example.org/keep in 1 resource instances, "
    "batch.kubernetes.io/job-tracking in 2 resource instances"
)


def test_each_finalizer_is_named_with_what_it_holds() -> None:
    found = deletion_blockers(
        "team-a", [condition("NamespaceContentRemaining", LEFT), condition("NamespaceFinalizersRemaining", HELD)]
    )
    remains = "Remaining objects: 1 configmaps, 2 jobs.batch."
    assert [one.said for one in found] == [
        f"Finalizer example.org/keep blocks the deletion of 1 object. {remains}",
        f"Finalizer batch.kubernetes.io/job-tracking blocks the deletion of 2 objects. {remains}",
    ]
    assert "kubectl -n team-a get configmaps,jobs.batch " in found[0].do
    assert {one.raw for one in found} == {HELD}


def test_without_a_finalizer_it_is_only_on_its_way() -> None:
    [found] = deletion_blockers("team-a", [condition("NamespaceContentRemaining", LEFT)])
    assert found.said == (
        "Remaining objects: 1 configmaps, 2 jobs.batch. No finalizer blocks them; they are being deleted."
    )


@pytest.mark.parametrize(
    ("type", "word"),
    [
        ("NamespaceDeletionDiscoveryFailure", "a part of the API does not respond"),
        ("NamespaceDeletionGroupVersionParsingFailure", "cannot parse a part"),
        ("NamespaceDeletionContentFailure", "could not delete all"),
    ],
)
def test_trouble_of_the_api_server_is_said_first(type: str, word: str) -> None:
    found = deletion_blockers("team-a", [condition("NamespaceContentRemaining", LEFT), condition(type, "Failed: x")])
    assert isinstance(found[0], DeletionBlocker)
    assert word in found[0].said
    assert (found[0].raw, len(found)) == ("Failed: x", 1)


def test_conditions_that_are_not_so_block_nothing() -> None:
    gone = [condition("NamespaceContentRemaining", "All content successfully removed", "False")]
    assert deletion_blockers("team-a", gone) == []
    assert deletion_blockers("team-a", [condition("NamespaceFinalizersRemaining", HELD, "False")]) == []
