"""Storage beside GPU classes: in one request, decided line by line, increased, ended, and limited in the cluster."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, User
from catalog.models import GpuClass
from cluster.apply.reconcile import create_once
from cluster.client.kube import Kube
from cluster.manifests import run as manifests
from cluster.manifests.run_spec import ClaimSpec
from cluster.models import AppliedObject
from cluster.reads import cluster_queue
from devcluster.client.kube import Api
from portal.core.due import Outcome
from portal.core.errors import Refused
from tenants.grants import queries
from tenants.grants import types as grant_types
from tenants.grants.reminders import actions as reminder_actions
from tenants.grants.reminders import mails as reminder_mails
from tenants.grants.timeline import queries as timeline_queries
from tenants.models import Grant, Namespace, QuotaLine, Tenant
from tenants.provisioning import queries as provisioning_queries
from tenants.requests import actions, policy
from tenants.requests import types as request_types
from tenants.requests.decisions import actions as decision_actions
from tenants.requests.decisions import queries as decision_queries
from tenants.requests.decisions.types import Decision, OverPromise
from tenants.requests.reclaims import actions as reclaim_actions
from tenants.requests.reclaims import mails
from tenants.requests.types import RequestedLine
from tests.support.http.callers import caller
from tests.support.rows import make, mirrored
from tests.support.rows.claims import claim
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
GIB = 1024**3


def page(who: User) -> Actor:
    return Actor(user=who, via="page")


def signed_in(who: User) -> Client:
    client = Client()
    client.force_login(who)
    return client


@pytest.fixture
def storage(a100: GpuClass) -> GpuClass:
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8)
    return make.storage(a100.cluster)


def asked(gpu_class: GpuClass, units: int, *, kind: str = "base", days: int = 30) -> RequestedLine:
    now = timezone.now()
    return RequestedLine(gpu_class=gpu_class.slug, units=units, starts=now, ends=now + days * DAY, kind=kind)


def quota_of(namespace: Namespace) -> Any:
    in_force = queries.units_in_force(namespace.tenant_id, timezone.now())
    shares = provisioning_queries.class_shares(namespace, in_force)
    return provisioning_queries.namespace_spec(
        namespace, shares, cluster_queue.LiveClusterQueue(is_open=True, cells={}), is_held=False
    ).quota


# ---- a request for GPUs and storage ------------------------------------------------------------------------------


def test_a_request_of_both_is_decided_line_by_line_and_ends(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, storage: GpuClass, alice: User, dana: User
) -> None:
    filed = actions.file_request(
        team_a.slug, lines=[asked(a100, 2), asked(storage, 200)], justification="Data.", by=page(alice)
    )
    cards, gib = filed.lines.order_by("pk")
    decision_actions.decide_request(
        filed.pk,
        [Decision(cards.pk, approve=True), Decision(gib.pk, approve=True, units=150, reason="As much as is left.")],
        by=page(dana),
    )
    assert queries.units_in_force(team_a.pk, timezone.now()) == {a100.pk: 2, storage.pk: 150}
    gib.refresh_from_db()
    assert (gib.asked_units, gib.decided_units, gib.facts["limit"]) == (200, 150, 1000)
    assert quota_of(namespace_a).storage_gib == 150
    told = Delivery.objects.filter(user=alice).latest("pk").body
    assert "storage: approved, new total of 150 GiB from" in told
    assert f"{a100.slug}: approved, new total of 2 units from" in told

    more = actions.file_request(
        team_a.slug, lines=[asked(storage, 50, kind="boost", days=2)], justification="A copy.", by=page(alice)
    )
    decision_actions.decide_request(
        more.pk, [Decision(line.pk, approve=True) for line in more.lines.all()], by=page(dana)
    )
    assert quota_of(namespace_a).storage_gib == 200
    assert queries.units_in_force(team_a.pk, timezone.now() + 3 * DAY)[storage.pk] == 150

    less = actions.file_request(team_a.slug, lines=[asked(storage, 0)], justification="Moved.", by=page(alice))
    assert less.lines.get().rule == "decrease"
    assert quota_of(namespace_a).storage_gib == 50, "the boost stays on top"


def test_more_than_staff_said_needs_the_tick(
    team_a: Tenant, namespace_a: Namespace, storage: GpuClass, alice: User, dana: User
) -> None:
    filed = actions.file_request(team_a.slug, lines=[asked(storage, 1001)], justification="Data.", by=page(alice))
    decisions = [Decision(line.pk, approve=True) for line in filed.lines.all()]
    with pytest.raises(Refused, match=r"exceeds the allocation limit of Team storage \(1000\) by 1"):
        decision_actions.decide_request(filed.pk, decisions, by=page(dana))
    GpuClass.objects.filter(pk=storage.pk).update(promise_limit=None)
    with pytest.raises(Refused, match="no allocation limit") as refused:
        decision_actions.decide_request(filed.pk, decisions, by=page(dana))
    assert refused.value.code == "over_promised"
    decision_actions.decide_request(
        filed.pk, decisions, by=page(dana), over_promise=OverPromise(True, "The array grows.")
    )
    assert queries.units_in_force(team_a.pk, timezone.now()) == {storage.pk: 1001}


def test_sentences_about_it_say_gib(storage: GpuClass) -> None:
    facts = grant_types.ClassFacts("storage", "Team storage", "active", unit="GiB")
    now = timezone.now()
    zero = policy.line_refusal(RequestedLine("storage", 0, now, now + DAY, "boost"), facts, now=now)
    assert zero is not None
    assert zero.message == "Enter at least 1 GiB for a temporary increase."
    many = policy.line_refusal(RequestedLine("storage", 200_000, now, now + DAY), facts, now=now)
    assert many is not None
    assert many.message == "Enter 0 to 100,000 GiB."
    line = request_types.ReclaimLine("storage", 100, now + 8 * DAY)
    taken = mails.reclaim_text("Team storage", 200, line, now, unit="GiB", is_storage=True)
    assert taken.startswith("Team storage: reduction from 200 to 100 GiB on ")
    assert taken.endswith("Volumes are kept. While they request more than that, new volumes are rejected.")
    ending = reminder_mails.grant_end_text(now, is_storage=True, is_over=False)
    assert ending.startswith("Volumes and their data are kept.")
    assert "runs" not in ending


def test_letters_of_taking_back_and_of_the_end_say_gib(
    team_a: Tenant, namespace_a: Namespace, storage: GpuClass, alice: User, dana: User
) -> None:
    now = timezone.now()
    grant = make.grant(team_a, storage, units=50, until=now + 10 * DAY)
    reclaim_actions.file_reclaim(
        team_a.slug,
        lines=[request_types.ReclaimLine(storage.slug, 20, now + 8 * DAY)],
        justification="Full.",
        by=page(dana),
    )
    told = Delivery.objects.get(user=alice)
    assert told.subject == "Proposed quota reduction for Team A"
    assert "Team storage: reduction from 50 to 20 GiB on" in told.body

    reminder_actions.send_due_reminders(namespace_a, [grant], now + 4 * DAY)
    assert "The grant of 50 GiB of Team storage expires on" in Delivery.objects.filter(user=alice).latest("pk").body
    reminder_actions.notify_ended_grants(namespace_a, [grant])
    ended = Delivery.objects.filter(user=alice).latest("pk").body
    assert "The grant of 50 GiB of Team storage expired on" in ended
    assert "While they request more than the quota, new volumes are rejected." in ended
    assert "starts on it" not in ended


# ---- used storage on pages ---------------------------------------------------------------------------------------


def test_used_is_what_the_claims_of_the_namespace_ask_for(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, storage: GpuClass
) -> None:
    at = timezone.now()
    assert decision_queries.class_figures(team_a, [storage], at=at)[storage.pk].used is None
    make.grant(team_a, storage, units=50)
    half = claim("half", namespace_a.name, 1)
    half["spec"]["resources"]["requests"]["storage"] = "512Mi"
    mirrored.seen(
        a100.cluster,
        PersistentVolumeClaim=[claim("data", namespace_a.name, 20), half, claim("theirs", "elsewhere", 7)],
    )
    found = decision_queries.class_figures(team_a, [a100, storage], at=at)[storage.pk]
    assert (found.held, found.used, found.limit, found.promised) == (50, 21, 1000, 50)
    assert (found.allocatable, found.free, found.in_use) == (None, None, None)


def test_pages_show_gib_and_claim_nothing_of_cards(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, storage: GpuClass, alice: User, dana: User
) -> None:
    make.grant(team_a, storage, units=50)
    mirrored.seen(a100.cluster, PersistentVolumeClaim=[claim("data", namespace_a.name, 20)])
    actions.file_request(
        team_a.slug, lines=[asked(a100, 2), asked(storage, 200)], justification="Data.", by=page(alice)
    )
    form = _text(signed_in(alice).get("/teams/team-a/requests/new?class=" + storage.slug))
    assert "for volumes; 50 of 1000 GiB allocated to teams" in form
    inbox = _text(signed_in(dana).get("/inbox"))
    assert "Team storage: 50 → 200 GiB" in inbox
    request = _text(signed_in(dana).get(f"/requests/{QuotaLine.objects.latest('pk').request_id}"))
    assert "Requested: 200 GiB from" in request
    home = _text(signed_in(alice).get("/teams/team-a"))
    assert "20 of 50 granted GiB used, 0 borrowed, 0 queued" in home
    grants = _text(signed_in(alice).get("/teams/team-a/grants"))
    assert "Total of 50 GiB" in grants
    assert "Kept with all data, also above the quota." in grants
    assert "reclaimed for other" not in grants
    for text in (form, inbox, request, home, grants):
        for wrong in ("GiBs", "50 units", "50 GPUs", "200 units", "200 GPUs"):
            assert wrong not in text


def test_home_says_that_it_does_not_know_rather_than_0(
    team_a: Tenant, namespace_a: Namespace, storage: GpuClass, alice: User
) -> None:
    make.grant(team_a, storage, units=50)
    assert "50 GiB granted; usage unknown" in _text(signed_in(alice).get("/teams/team-a"))


def test_the_last_day_of_storage_is_of_volumes(team_a: Tenant, namespace_a: Namespace, storage: GpuClass) -> None:
    make.grant(team_a, storage, units=50)
    [row] = timeline_queries.grant_rows(team_a, at=timezone.now())
    assert (row.is_storage, row.unit) == (True, "GiB")


# ---- API and command ---------------------------------------------------------------------------------------------


def test_by_rest_and_by_command(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, storage: GpuClass, alice: User, dana: User
) -> None:
    ends = (timezone.now() + 30 * DAY).isoformat()
    lines = [{"gpu_class": one.slug, "units": units, "ends_at": ends} for one, units in ((a100, 2), (storage, 60))]
    filed = caller(alice).post(
        "/api/v1/requests",
        json.dumps({"team": "team-a", "lines": lines, "justification": "Data."}),
        content_type="application/json",
    )
    assert filed.status_code == 201, filed.content
    pk = filed.json()["id"]
    out = io.StringIO()
    call_command("quota", "approve", str(pk), "--as", dana.email, stdout=out)
    assert "=60 GiB" in out.getvalue()
    assert {grant.gpu_class_id: grant.units for grant in Grant.objects.all()} == {a100.pk: 2, storage.pk: 60}


def _text(response: Any) -> str:
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


# ---- ResourceQuota in the cluster --------------------------------------------------------------------------------


@pytest.mark.usefixtures("clean_cluster")
def test_the_api_server_refuses_a_claim_that_has_no_room_and_keeps_what_is_there(
    look: Callable[[], Outcome],
    team_a: Tenant,
    namespace_a: Namespace,
    storage: GpuClass,
    kube_worker: Kube,
    admin: Api,
) -> None:
    grant = make.grant(team_a, storage, units=50)
    look()
    wait_until(lambda: _status(admin, namespace_a).get("requests.storage") == "50Gi", what="the quota is counted")

    def make_claim(number: int, gib: int) -> AppliedObject:
        owner = f"workloads.volume.{number}"
        spec = ClaimSpec(owner=owner, namespace=namespace_a.name, name=f"data-{number}", size_gib=gib)
        return create_once(
            kube=kube_worker, cluster_id=namespace_a.cluster_id, owner=owner, manifest=manifests.volume_claim(spec)
        )

    assert make_claim(1, 40).result == AppliedObject.Result.APPLIED
    wait_until(lambda: _status(admin, namespace_a, "used").get("requests.storage") == "40Gi", what="it is counted")
    refused = make_claim(2, 20)
    assert refused.result == AppliedObject.Result.REFUSED
    assert "requests.storage" in refused.text
    Grant.objects.filter(pk=grant.pk).delete()
    look()
    hard = admin.get("v1/resourcequotas", "gpu-portal", namespace=namespace_a.name)["spec"]["hard"]
    assert hard["requests.storage"] in ("0", "0Gi")
    there = admin.list("v1/persistentvolumeclaims", namespace=namespace_a.name)
    assert [one["metadata"]["name"] for one in there] == ["data-1"]


def _status(admin: Api, namespace: Namespace, what: str = "hard") -> dict[str, str]:
    found = admin.get("v1/resourcequotas", "gpu-portal", namespace=namespace.name)
    told: dict[str, str] = (found.get("status") or {}).get(what) or {}
    return told
