"""What can start now, where others use a team's quota, other ResourceQuotas limit it, or queue or namespace accept
nothing: form, home and strip agree with the cluster.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.manifests import run as manifests
from cluster.manifests.metadata import OWNER_LABEL
from cluster.reads.observed import GenericObject
from desk.home.queries import home_state
from desk.home.quick_start import quick_starts
from devcluster.client.kube import Api
from tenants.models import Namespace, Tenant
from tests.support.cluster.queued import spec
from tests.support.waiting import wait_until
from workloads.forecast.availability import BAD, GOOD, WAIT, AvailabilityFigures, availability_sentence
from workloads.forecast.queries import LaunchSize, limits_of, outlooks
from workloads.forecast.team_limits import QuotaRoom, TeamLimits, UnitSize, team_limits
from workloads.launch.queries import reachable_classes

GPU = UnitSize("a100", "nvidia.com/gpu", cpu=8, memory_gib=64)
FIGURES = AvailabilityFigures(unit="GPU", granted=4, used=1, borrowing_limit=0, on_one_node=4)
ELSEWHERE = "by workloads not started in the portal"
PODS = QuotaRoom("extra", "pods", "pods", most=2, left=0)


def of(kind: str, *, deleting: bool = False, name: str = "team-a", **record: Any) -> GenericObject:
    now = datetime.now(UTC)
    return GenericObject(kind, "", name, "u", "", now, now if deleting else None, record)


# ---- pure --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("figures", "each", "words", "tone"),
    [
        (replace(FIGURES, foreign=2), 1, f"uses 4 of 4 GPUs (2 {ELSEWHERE}); 4 free", GOOD),
        (
            replace(FIGURES, foreign=3),
            1,
            "your team's 4 GPUs are in use (3 by workloads not started in the portal)",
            WAIT,
        ),
        (replace(FIGURES, closed="Paused."), 1, "Paused. New workloads wait.", WAIT),
        (
            replace(FIGURES, rooms=(PODS,)),
            1,
            "the ResourceQuota extra of the namespace has room for 0 pods (pods)",
            WAIT,
        ),
        (
            replace(FIGURES, rooms=(replace(PODS, of="units", most=1),)),
            2,
            "Not possible: the ResourceQuota extra of the namespace allows at most 1 GPU (pods).",
            BAD,
        ),
    ],
)
def test_what_stands_in_the_way_is_said(figures: AvailabilityFigures, each: int, words: str, tone: str) -> None:
    text, found = availability_sentence(figures, None, each)
    assert words in text
    assert found == tone
    assert (figures.units_now >= each) == (tone == GOOD)
    assert bool(figures.workers_now(each)) == (tone == GOOD)


def test_the_larger_of_two_counts_is_right() -> None:
    limits = TeamLimits(reserved={("a100", "nvidia.com/gpu"): 3})
    assert limits.foreign_units(GPU, own=1) == 2
    assert limits.foreign_units(GPU, own=4) == 0
    assert limits.foreign_units(replace(GPU, resource=""), own=0) == 0


def test_every_key_of_every_quota_counts() -> None:
    hard = {"pods": "3", "requests.nvidia.com/gpu": "4", "requests.cpu": "20", "limits.memory": "100Gi", "secrets": "1"}
    used = {"pods": "3", "requests.nvidia.com/gpu": "1", "requests.cpu": "2500m", "limits.memory": "10Gi"}
    limits = team_limits([of("ResourceQuota", name="extra", hard=hard, used=used)])
    found = {room.key: (room.of, room.most, room.left) for room in limits.rooms(GPU)}
    assert found == {
        "pods": ("pods", 3, 0),
        "requests.nvidia.com/gpu": ("units", 4, 3),
        "requests.cpu": ("units", 2, 2),
        "limits.memory": ("units", 1, 1),
    }
    freed = {room.key: room.left for room in limits.rooms(GPU, freed=1, freed_workers=1)}
    assert freed == {"pods": 1, "requests.nvidia.com/gpu": 4, "requests.cpu": 2, "limits.memory": 1}


def queue(**more: Any) -> GenericObject:
    return of("ClusterQueue", **{"stop_policy": "None", "reserved": {}, "conditions": [], **more})


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (of("Namespace"), ""),
        (of("Namespace", deleting=True), "is being deleted"),
        (queue(), ""),
        (queue(stop_policy="Hold"), "Your team's queue is paused"),
        (of("LocalQueue", stop_policy="HoldAndDrain"), "Your team's queue is paused"),
        (
            queue(
                conditions=[
                    {
                        "type": "Active",
                        "status": "False",
                        "reason": "FlavorNotFound",
                        "message": "Can't admit new workloads: references missing ResourceFlavor(s): a.",
                        "since": None,
                    }
                ]
            ),
            "Your team's queue cannot admit workloads: it references missing ResourceFlavor(s): a.",
        ),
    ],
)
def test_a_queue_or_namespace_that_accepts_nothing(found: GenericObject, words: str) -> None:
    said = team_limits([found]).closed
    assert words in said
    assert bool(said) == bool(words)


# ---- on the real cluster -----------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("watcher")
def test_form_home_and_strip_count_what_kueue_counts(
    admin: Api, provisioned: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, by_alice: Actor
) -> None:
    """Somebody starts a Job with kubectl, for both units of the quota; then a ResourceQuota allows no pods."""

    def outlook() -> str:
        return outlooks(namespace_a, list(reachable_classes(namespace_a)), LaunchSize())[a100.slug].sentence

    def reserved() -> int:
        return limits_of(namespace_a).foreign_units(UnitSize(a100.slug, a100.resource, 1, 1), 0)

    assert "starts now" in outlook()
    assert quick_starts(by_alice, namespace_a)
    body = manifests.job(spec(a100, namespace_a, name="kubectl", units=2))
    body["metadata"]["labels"] = {key: one for key, one in body["metadata"]["labels"].items() if key != OWNER_LABEL}
    admin.create(body, namespace=namespace_a.name)
    wait_until(lambda: reserved() == 2, what="Kueue reserves both units")
    assert f"your team's 2 GPUs are in use (2 {ELSEWHERE})" in outlook()
    assert quick_starts(by_alice, namespace_a) == []
    [held] = home_state(namespace_a).holdings
    assert (held.granted, held.used, held.outside, held.borrowed) == (2, 2, 2, 0)

    admin.delete("batch/v1/jobs", body["metadata"]["name"], namespace=namespace_a.name)
    wait_until(lambda: reserved() == 0, what="the units are free again")
    metadata = {"name": "extra", "namespace": namespace_a.name}
    admin.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": "0"}}})
    wait_until(lambda: "extra" in limits_of(namespace_a).quotas, what="the mirror has the quota")
    assert outlook() == "Not possible: the ResourceQuota extra of the namespace allows at most 0 pods (pods)."
    assert quick_starts(by_alice, namespace_a) == []
    admin.delete("v1/resourcequotas", "extra", namespace=namespace_a.name)
    wait_until(lambda: "starts now" in outlook(), what="the way is free")

    paused = {"spec": {"stopPolicy": "Hold"}}
    admin.patch("kueue.x-k8s.io/v1beta2/localqueues", "gpu-portal", paused, namespace=namespace_a.name)
    wait_until(lambda: "Your team's queue is paused" in outlook(), what="the pause is said")
    assert quick_starts(by_alice, namespace_a) == []
