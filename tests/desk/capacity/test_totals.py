"""What each signed-in user sees of a class: promised, used, queued, borrowed and free units, and two totals."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor, system_actor
from accounts.models import Scope, User
from catalog.classes.capacity.types import Capacity
from catalog.classes.proposals import actions
from catalog.discovery import queries
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorEpoch, MirrorNode, MirrorWorkload
from desk.capacity.totals import ClassFigures, WeightedTotals, class_figures, weight_of, weighted_totals
from tenants.models import Grant, Namespace, Tenant
from tests.support.rows import make, mirrored, running

WHOLE = {"nvidia.com/gpu": 2}


@pytest.fixture
def team_b(cluster: Cluster) -> Tenant:
    return make.tenant(cluster, slug="team-b")


@pytest.fixture
def mig(cluster: Cluster) -> GpuClass:
    """A MIG class whose unit is one seventh of a GPU: 7 units on one node."""
    return make.gpu_class(
        cluster,
        slug="a100-1g",
        partition="1g.10gb",
        resource="nvidia.com/mig-1g.10gb",
        weight="0.1429",
        node_labels={"nvidia.com/mig-1g.10gb.sharing-strategy": "none"},
    )


def of(gpu_class: GpuClass) -> ClassFigures:
    return class_figures(gpu_class.cluster, [gpu_class])[gpu_class.pk]


def pod_of(namespace: str, gpu_class: str, name: str, node: str = "a100-1") -> dict[str, Any]:
    return mirrored.pod(name, node=node, namespace=namespace, gpu_class=gpu_class, **WHOLE)


def waiting(namespace: Namespace, gpu_class: GpuClass, alice: User, *, units: int, **columns: Any) -> None:
    """A run whose Kueue Workload has no quota reservation."""
    found = running.workload(namespace, gpu_class, name=f"w{units}", by=alice, units=units)
    running.make_ready(found).delete()
    record = {"active": True, "conditions": [], "priority": 0}
    MirrorWorkload.objects.create(
        cluster_id=namespace.cluster_id,
        namespace=namespace.name,
        name=f"job-{found.pk}",
        uid=f"queued-{found.pk}",
        resource_version=1,
        created_at=timezone.now(),
        job_uid=f"job-{found.pk}",
        record={**record, **columns},
    )


# ---- totals of one class -----------------------------------------------------------------------------------------


def test_promised_is_what_all_teams_hold_now(a100: GpuClass, team_a: Tenant, team_b: Tenant) -> None:
    mirrored.hardware_seen(a100.cluster)
    make.grant(team_a, a100, units=3)
    make.grant(team_a, a100, units=1, kind=Grant.Kind.BOOST)
    make.grant(team_b, a100, units=2)
    over = timezone.now() - timedelta(days=40)
    make.grant(team_b, a100, units=50, since=over, until=over + timedelta(days=1))
    assert of(a100).promised == 6


def test_what_one_team_does_not_use_is_not_set_off_against_what_another_borrows(
    a100: GpuClass, team_a: Tenant, team_b: Tenant, namespace_a: Namespace
) -> None:
    make.grant(team_a, a100, units=1)
    make.grant(team_b, a100, units=8)
    mine = [pod_of(namespace_a.name, a100.slug, "one"), pod_of(namespace_a.name, a100.slug, "two", "a100-2")]
    strangers = [pod_of("kube-system", "", "agent", "a100-3")]
    mirrored.hardware_seen(a100.cluster, Pod=[*mine, *strangers])
    found = of(a100)
    assert (found.capacity.used, found.borrowed, found.promised) == (6, 3, 9)


def test_what_runs_on_in_a_grace_is_not_borrowed(a100: GpuClass, team_a: Tenant, namespace_a: Namespace) -> None:
    now = timezone.now()
    make.grant(team_a, a100, units=1, since=now - timedelta(days=2))
    ended = make.grant(
        team_a, a100, units=2, since=now - timedelta(days=1), until=now - timedelta(hours=1), kind=Grant.Kind.BOOST
    )
    pods = [pod_of(namespace_a.name, a100.slug, f"pod-{number}", f"a100-{number}") for number in (1, 2)]
    mirrored.hardware_seen(a100.cluster, Pod=pods)
    assert (of(a100).capacity.used, of(a100).borrowed, of(a100).promised) == (4, 1, 1)
    Grant.objects.filter(pk=ended.pk).update(grace=timedelta(0))
    assert of(a100).borrowed == 3


def test_queued_is_what_waits_for_quota(a100: GpuClass, namespace_a: Namespace, alice: User) -> None:
    mirrored.hardware_seen(a100.cluster)
    reserved = [{"type": "QuotaReserved", "status": "True"}]
    evicted = [{"type": "QuotaReserved", "status": "False"}]
    waiting(namespace_a, a100, alice, units=2)
    waiting(namespace_a, a100, alice, units=3, conditions=evicted)
    waiting(namespace_a, a100, alice, units=5, conditions=reserved)
    waiting(namespace_a, a100, alice, units=7, active=False)
    assert of(a100).queued == 5


def test_free_slices_are_told_as_physical_cards_too(mig: GpuClass, a100: GpuClass) -> None:
    mirrored.hardware_seen(mig.cluster)
    found = of(mig)
    assert (found.capacity.free, found.cards, found.weight) == (7, Fraction(1), Fraction(1, 7))
    assert of(a100).cards is None


def test_four_slices_of_double_memory_fill_a_gpu_whatever_they_count(mig: GpuClass) -> None:
    """A slice of a seventh of the compute and a quarter of the memory leaves three quarters."""
    GpuClass.objects.filter(pk=mig.pk).update(partition="1g.20gb", weight="0.1429")
    mig.refresh_from_db()
    mirrored.hardware_seen(mig.cluster)
    found = of(mig)
    assert (found.capacity.free, found.cards, found.weight) == (7, Fraction(7, 4), Fraction(1, 7))


@pytest.mark.parametrize(
    ("weight", "replicas", "exact"),
    [("0.1429", 1, "1/7"), ("0.4286", 1, "3/7"), ("0.0357", 4, "1/28"), ("0.2500", 4, "1/4"), ("0.1500", 1, "3/20")],
)
def test_weights_that_were_rounded_are_taken_exactly(cluster: Cluster, weight: str, replicas: int, exact: str) -> None:
    sharing = {"sharing": "time-slicing", "replicas": replicas, "units_per_workload": 1} if replicas > 1 else {}
    one = make.gpu_class(cluster, slug="one", weight=weight, **sharing)
    one.refresh_from_db()
    assert weight_of(one) == Fraction(exact)


def test_what_nobody_knows_is_none(a100: GpuClass, team_a: Tenant) -> None:
    make.grant(team_a, a100, units=3)
    found = of(a100)
    assert (found.capacity.free, found.queued, found.borrowed, found.promised) == (None, None, None, 3)
    mirrored.hardware_seen(a100.cluster)
    MirrorEpoch.objects.all().delete()
    assert weighted_totals([of(a100)]).exclusive.free is None


def test_the_number_of_queries_does_not_grow_with_the_catalog(cluster: Cluster, django_assert_num_queries: Any) -> None:
    mirrored.hardware_seen(cluster)
    found = queries.discover_cluster(cluster)
    assert found is not None
    classes = actions.accept_proposals(list(found.proposals), by=system_actor("test"), cluster=cluster)
    with django_assert_num_queries(8):
        class_figures(cluster, classes)
    with django_assert_num_queries(8):
        class_figures(cluster, classes[:1])


# ---- totals of several classes -----------------------------------------------------------------------------------


def test_shares_and_cards_are_never_added(cluster: Cluster, a100: GpuClass, mig: GpuClass) -> None:
    shared = make.gpu_class(
        cluster,
        slug="shared",
        sharing="time-slicing",
        replicas=4,
        units_per_workload=1,
        weight="0.25",
        node_labels={
            "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-SHARED",
            "nvidia.com/gpu.sharing-strategy": "time-slicing",
        },
    )
    mirrored.hardware_seen(cluster)
    found = totals_of(a100, mig, shared)
    assert (found.exclusive.allocatable, found.exclusive.free) == (Fraction(17), Fraction(17))
    assert found.shared.allocatable == Fraction(4)


def test_units_that_two_classes_select_are_counted_once(a100: GpuClass) -> None:
    twin = make.gpu_class(a100.cluster, slug="twin")
    mirrored.hardware_seen(a100.cluster, Pod=[pod_of("team", "", "busy")])
    both = class_figures(a100.cluster, [a100, twin])
    assert [both[one.pk].capacity.free for one in (a100, twin)] == [14, 14]
    found = weighted_totals(both.values()).exclusive
    assert (found.allocatable, found.free, found.used) == (16, 14, 2)


def test_a_total_with_an_unknown_part_is_unknown(a100: GpuClass) -> None:
    mirrored.hardware_seen(a100.cluster)
    known = of(a100)
    unknown = replace(known, capacity=Capacity(), queued=None)
    found = weighted_totals([known, unknown]).exclusive
    assert (found.free, found.queued, found.borrowed, found.promised) == (None, None, 0, 0)


def totals_of(*classes: GpuClass) -> WeightedTotals:
    return weighted_totals(class_figures(classes[0].cluster, list(classes)).values())


# ---- /api/v1/capacity --------------------------------------------------------------------------------------------


def asked(by: User) -> dict[str, Any]:
    name = f"script {by.tokens.count()}"
    _, token = api_token_actions.create_token(name=name, scopes=[Scope.READ], expires_in_days=7, by=Actor(by, "page"))
    answer = Client(headers={"Authorization": f"Bearer {token}"}).get("/api/v1/capacity")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def test_somebody_without_a_team_is_told_everything_and_no_team_is_named(
    a100: GpuClass, mig: GpuClass, team_a: Tenant, namespace_a: Namespace, charlie: User
) -> None:
    mirrored.hardware_seen(a100.cluster, Pod=[pod_of(namespace_a.name, a100.slug, "one")])
    MirrorNode.objects.filter(name="a100-4").update(schedulable=False)
    make.grant(team_a, a100, units=1)
    found = asked(charlie)
    whole, sliced = sorted(found["items"], key=lambda item: item["slug"] == mig.slug)
    names = (
        "allocatable",
        "promised",
        "used",
        "queued",
        "borrowed",
        "free",
        "most_on_one_node",
        "cordoned",
        "unhealthy",
    )
    assert [whole[name] for name in names] == [16, 1, 2, 0, 1, 10, 4, 4, 0]
    assert (whole["unit"], whole["free_cards"], whole["is_current"], whole["problem"]) == ("GPU", None, True, "")
    assert (sliced["free"], sliced["free_cards"]) == (7, "1")
    assert found["totals"]["exclusive"]["free"] == "11"
    assert found["totals"]["shared"]["free"] == "0"
    assert "team-a" not in str(found)


def test_a_class_for_named_teams_is_told_to_them_alone(a100: GpuClass, alice: User, team_a: Tenant) -> None:
    secret = make.gpu_class(a100.cluster, slug="secret", visibility="named")
    mirrored.hardware_seen(a100.cluster)
    assert [item["slug"] for item in asked(alice)["items"]] == [a100.slug]
    team_a.class_access.create(gpu_class=secret)
    assert {item["slug"] for item in asked(alice)["items"]} == {a100.slug, "secret"}


def test_an_unknown_cluster_is_null_and_not_zero(a100: GpuClass, charlie: User) -> None:
    found = asked(charlie)
    [item] = found["items"]
    assert (item["free"], item["used"], item["queued"], item["as_of"]) == (None, None, None, None)
    assert item["problem"]
    assert found["totals"]["exclusive"]["free"] is None
