"""Starts with a volume that is not there, or that no node of the class can mount, are refused before units are used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.core.actor import Actor
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorKind, MirrorNode
from portal.core.errors import Refused
from tenants.models import Namespace, Tenant
from tests.support.rows import claims, mirrored
from workloads.core.observation import UNUSABLE_PHASES
from workloads.launch import actions
from workloads.launch.spec import frozen_spec, job_manifest
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Volume, Workload
from workloads.storage import queries as storage_queries

pytestmark = pytest.mark.django_db


@pytest.fixture
def data(granted: Tenant, namespace_a: Namespace, cluster: Cluster) -> Volume:
    mirrored.hardware_seen(cluster)
    return claims.claimed(namespace_a, "data")


@pytest.fixture
def wanted(data: Volume, notebook: LaunchSpec) -> LaunchSpec:
    return replace(notebook, volume="data")


@pytest.fixture
def in_zones(data: Volume) -> Callable[[str], None]:
    def put(zone: str) -> None:
        for node in MirrorNode.objects.all():
            node.record["labels"][claims.ZONE] = zone
            node.save()

    return put


def refused(wanted: LaunchSpec, by: Actor) -> tuple[str, str, int, str]:
    with pytest.raises(Refused) as no:
        actions.launch("team-a", wanted, by=by)
    assert not Run.objects.exists()
    found = no.value.refusal
    return found.code, found.field, found.status, found.message


@pytest.mark.parametrize("phase", ["missing", "terminating", "lost"])
def test_with_a_claim_that_is_not_there(
    phase: str, wanted: LaunchSpec, by_alice: Actor, namespace_a: Namespace
) -> None:
    if phase != "missing":
        claim = claims.bound(namespace_a, "data", phase="Lost" if phase == "lost" else "Bound")
        claim.deleting_since = timezone.now() if phase == "terminating" else None
        claim.save()
    code, field, status, text = refused(wanted, by_alice)
    assert (code, field, status) == ("volume_missing", "volume", 409)
    assert f"The volume data {UNUSABLE_PHASES[phase]}" in text


def test_not_while_it_may_only_be_too_new_for_the_mirror(
    wanted: LaunchSpec, by_alice: Actor, cluster: Cluster, namespace_a: Namespace
) -> None:
    """The watcher has heard nothing of claims since this one was sent, or has not listed them all."""
    kind = MirrorKind.objects.filter(kind="PersistentVolumeClaim")
    kind.update(heard_at=timezone.now() - timedelta(minutes=5))
    assert actions.launch("team-a", wanted, by=by_alice)
    Run.objects.update(ended_at=timezone.now(), outcome="stopped")
    kind.update(heard_at=timezone.now(), listed_at=None)
    assert actions.start("team-a", "one", by=by_alice).number == 2


def test_a_new_volume_is_not_missing(notebook: LaunchSpec, data: Volume, by_alice: Actor) -> None:
    assert actions.launch("team-a", replace(notebook, volume="new"), by=by_alice).volume is not None


def test_a_start_again_and_its_button_are_refused_too(
    wanted: LaunchSpec, by_alice: Actor, namespace_a: Namespace, a100: GpuClass
) -> None:
    claim = claims.bound(namespace_a, "data", key="kubernetes.io/os", value="linux")
    workload = actions.launch("team-a", wanted, by=by_alice)
    Run.objects.update(ended_at=timezone.now(), outcome="stopped")
    claim.delete()
    with pytest.raises(Refused) as no:
        actions.start("team-a", "one", by=by_alice)
    assert no.value.refusal.code == "volume_missing"
    assert storage_queries.attach_refusal(workload.volume, namespace_a, a100) == no.value.refusal


def test_where_no_node_of_the_class_can_mount_it(
    wanted: LaunchSpec, by_alice: Actor, namespace_a: Namespace, in_zones: Callable[[str], None], a100: GpuClass
) -> None:
    in_zones("a")
    claims.bound(namespace_a, "data")
    code, field, status, text = refused(wanted, by_alice)
    assert (code, field, status) == ("volume_elsewhere", "volume", 422)
    assert "The volume data can be mounted only in zone b, and no node of A100 80GB whole card is there" in text

    GpuClass.objects.filter(pk=a100.pk).update(max_units=8, node_minutes=5)
    assert actions.launch("team-a", wanted, by=by_alice)


def test_one_node_that_can_mount_it_is_enough(
    wanted: LaunchSpec, by_alice: Actor, namespace_a: Namespace, in_zones: Callable[[str], None]
) -> None:
    in_zones("b")
    claims.bound(namespace_a, "data")
    workload = actions.launch("team-a", wanted, by=by_alice)
    job = job_manifest(namespace_a.cluster, frozen_spec(workload, 1))
    assert "'values': ['b']" in str(job["spec"]["template"]["spec"]["affinity"])


def test_a_class_without_any_known_node_refuses_nothing_for_its_place(
    wanted: LaunchSpec, by_alice: Actor, namespace_a: Namespace
) -> None:
    claims.bound(namespace_a, "data")
    MirrorNode.objects.all().delete()
    assert actions.launch("team-a", wanted, by=by_alice)


def test_of_the_same_name_in_another_namespace_nothing_is_read(
    wanted: LaunchSpec, by_alice: Actor, namespace_a: Namespace
) -> None:
    claim = claims.bound(namespace_a, "data")
    claim.namespace = "elsewhere"
    claim.save()
    assert refused(wanted, by_alice)[0] == "volume_missing"


def test_what_a_start_asks_about_its_volume(
    wanted: LaunchSpec, by_alice: Actor, namespace_a: Namespace, a100: GpuClass, data: Volume,
    django_assert_num_queries: Any,
) -> None:  # fmt: skip
    assert Workload.objects.count() == 0
    claims.bound(namespace_a, "data")
    with django_assert_num_queries(4):  # its run, its claim; that nodes are known, their labels
        storage_queries.attach_refusal(data, namespace_a, a100)
