"""The operators' start page: each figure is that of the page that it links to."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.core.actor import system_actor
from accounts.models import Delivery, Event, Role, User
from catalog.classes.proposals.actions import accept_proposals
from catalog.discovery.queries import discover_cluster
from catalog.models import GpuClass
from cluster.models import AppliedObject, Cluster, ObjectDrift
from desk.cockpit.queries import cockpit
from desk.health.queries import SHOWN
from tenants.models import Bundle, Namespace, QuotaLine, QuotaRequest, TeamRequest, Tenant
from tests.support.rows import make, mirrored, running

pytestmark = pytest.mark.django_db


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def pending(team: Tenant, gpu_class: GpuClass, by: User, *, days: int) -> QuotaRequest:
    now = timezone.now()
    found = QuotaRequest.objects.create(tenant=team, filed_by=by, justification="A test.")
    QuotaRequest.objects.filter(pk=found.pk).update(filed_at=now - timedelta(days=days))
    QuotaLine.objects.create(
        request=found, tenant=team, gpu_class=gpu_class, asked_units=1, asked_from=now, asked_until=now + timedelta(9)
    )
    return found


def figure(text: str, label: str) -> str:
    """The number beside a label of the page."""
    found = re.search(rf">{label}</a></th><td class=\"r\">(?:<span.*?</svg>)?(.*?)<", text, re.DOTALL)
    assert found, label
    return found[1]


def test_capacity_by_sharing_mode(cluster: Cluster, team_a: Tenant, namespace_a: Namespace, a100: GpuClass) -> None:
    def of(slug: str, **fields: object) -> GpuClass:
        return make.gpu_class(cluster, slug=slug, node_labels={slug: "x"}, **fields)

    of("slice", partition="1g.10gb", resource="nvidia.com/mig-1g.10gb", weight="0.25")
    shared = {"units_per_workload": 1, "replicas": 4, "weight": "0.25"}
    sliced = of("turns", sharing="time-slicing", resource="nvidia.com/gpu.shared", **shared)
    of("mps", sharing="mps", resource="nvidia.com/gpu.mps", **shared)
    of("cores", interface="none", resource="", vendor="", product="")
    of("draft", life_cycle=GpuClass.LifeCycle.DRAFT)
    make.grant(team_a, a100, units=3)
    make.grant(team_a, sliced, units=2)
    pod = mirrored.pod("p", node="a100-1", namespace=namespace_a.name, gpu_class=a100.slug, **{"nvidia.com/gpu": 2})
    mirrored.hardware_seen(cluster, Pod=[pod])

    found = {one.label: one for one in cockpit(cluster, is_staff=True).modes}

    assert [*found] == ["Whole GPU", "MIG and other slices", "Time-sliced", "MPS"]
    whole = found["Whole GPU"].total
    assert (whole.used, whole.promised) == (2, 3)
    assert whole.allocatable
    assert whole.free == whole.allocatable - 2
    assert found["Time-sliced"].total.promised == Fraction(1, 2)
    assert found["MIG and other slices"].total.promised == 0


def test_what_nobody_knows_is_a_dash(cluster: Cluster, a100: GpuClass, olga: User) -> None:
    [mode] = cockpit(cluster, is_staff=True).modes
    assert (mode.total.free, mode.total.allocatable) == (None, None)
    assert "<b>–</b>" in signed_in(olga).get("/operators").text


def test_figures_are_those_of_the_pages_behind_them(
    cluster: Cluster, a100: GpuClass, team_a: Tenant, namespace_a: Namespace, alice: User, olga: User
) -> None:
    now = timezone.now()
    running.known(cluster.pk)
    running.workload(namespace_a, a100, name="waits", by=alice)
    stuck = make.tenant(cluster, slug="t-stuck")
    Namespace.objects.update(due_at=now - timedelta(hours=1))
    Namespace.objects.filter(tenant=stuck).update(error_code="refused", error_text="Rejected.")
    AppliedObject.objects.create(cluster=cluster, owner="x", kind="RoleBinding", name="r", result="refused")
    event = Event.objects.create(via="page", verb="x.y", row="r")
    Delivery.objects.create(event=event, user=alice, subject="s", body="b", error_code="smtp", due_at=None)
    waits = Event.objects.create(via="page", verb="x.y", row="r")
    Delivery.objects.create(event=waits, user=alice, subject="s", body="b", due_at=now + timedelta(days=1))
    drift = {"cluster": cluster, "owner": "x", "kind": "Role", "namespace": "n", "manager": "kubectl", "times": 1}
    # More than Health lists.
    for number, hours in enumerate([1] * (SHOWN + 2) + [30]):
        at = now - timedelta(hours=hours)
        ObjectDrift.objects.create(**drift, name=f"r-{number}", outcome="repaired", first_at=at, last_at=at)
    client = signed_in(olga)

    text = client.get("/operators").text

    assert "1 queued run<" in text
    assert figure(text, "Stuck teams") == "1"
    assert client.get("/operators/teams?state=stuck").text.count("<tr>") - 1 == 1
    assert figure(text, "Failing tasks") == "2"
    assert figure(text, "Undelivered mails") == "1"
    assert figure(text, "Objects out of sync") == "1"
    assert figure(text, "Drift repaired in 24 hours") == str(SHOWN + 2)
    assert f"{SHOWN + 2} repaired in 24 hours" in client.get("/health").text
    overdue = int(figure(text, "Tasks past due"))
    assert overdue == 2
    health = client.get("/health").text.split('id="overdue"')[1].split("</table>")[0]
    assert sum(map(int, re.findall(r'</th><td class="r">(\d+)</td>', health))) == overdue


def test_problems_and_hints_of_the_catalog_are_those_of_health(cluster: Cluster, olga: User) -> None:
    client = signed_in(olga)
    assert figure(client.get("/operators").text, "Catalog problems") == "–"
    mirrored.hardware_seen(cluster)
    found = discover_cluster(cluster)
    assert found is not None
    accept_proposals(list(found.proposals), by=system_actor("test"), cluster=cluster)
    for faults, verdict in ((0, "2 hints"), (1, "1 error, 2 hints")):
        text, health = client.get("/operators").text, client.get("/health").text
        assert (figure(text, "Catalog problems"), figure(text, "Catalog hints")) == (str(faults), "2")
        assert f">{verdict}<" in health
        assert ("1 catalog problem." in health) == ("1 catalog problem." in text) == bool(faults)
        if not faults:
            make.gpu_class(cluster, slug="gone", node_labels={"nvidia.com/gpu.product": "GONE"})


def test_every_anchor_is_on_health(cluster: Cluster, a100: GpuClass, olga: User) -> None:
    client = signed_in(olga)
    anchors = set(re.findall(r'href="/health#([a-z-]+)"', client.get("/operators").text))
    assert len(anchors) >= 6
    assert anchors <= set(re.findall(r'id="([a-z-]+)"', client.get("/health").text))


def test_pending_and_overdue_requests_of_all_teams(
    cluster: Cluster, a100: GpuClass, team_a: Tenant, alice: User, dana: User, olga: User
) -> None:
    old = pending(team_a, a100, alice, days=60)
    other = make.tenant(cluster, slug="team-b")
    asked = pending(other, a100, alice, days=60)
    asked.comments.create(author=dana, text="Why?", asks_back=True)
    new = pending(make.tenant(cluster, slug="team-c"), a100, alice, days=0)

    found = cockpit(cluster, is_staff=True)

    assert [(one.pk, one.team, one.is_overdue) for one in found.requests] == [
        (old.pk, "team-a", True),
        (asked.pk, "team-b", False),
        (new.pk, "team-c", False),
    ]
    assert found.overdue == 1
    bundle = Bundle.objects.create(name="Small", summary="One card.", days=30)
    TeamRequest.objects.create(name="Robotics", slug="robotics", purpose="x", bundle=bundle, user=alice)
    text = signed_in(olga).get("/operators").text
    assert "4 pending requests" in text, "all of them, as in the list"
    assert "New team Robotics" in text
    assert f"/requests/{old.pk}" in text
    QuotaLine.objects.filter(request=old).update(state="withdrawn")
    assert cockpit(cluster, is_staff=True).overdue == 0


def test_it_is_for_operators_and_administrators_and_they_start_there(
    team_a: Tenant, alice: User, dana: User, olga: User
) -> None:
    audra = make.user("Audra", roles=[Role.AUDITOR])
    adam = make.user("Adam", roles=[Role.ADMIN])
    for person, expected in ((olga, 200), (adam, 200), (audra, 404), (dana, 404), (alice, 404)):
        assert signed_in(person).get("/operators").status_code == expected, person
    assert signed_in(olga).get("/")["Location"] == "/operators"
    assert signed_in(adam).get("/")["Location"] == "/operators"


def test_queries_do_not_grow(cluster: Cluster, a100: GpuClass, alice: User, olga: User) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as found:
            cockpit(cluster, is_staff=True)
        return len(found)

    mirrored.hardware_seen(cluster)

    def add(name: str) -> None:
        team = make.tenant(cluster, slug=name)
        make.grant(team, a100, units=1)
        pending(team, a100, alice, days=1)
        running.workload(team.namespaces.get(), a100, by=alice, origin=f"n{name}")

    add("first")
    few = asked()
    for number in range(8):
        add(f"team-{number}")
    assert asked() == few
