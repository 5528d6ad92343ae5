"""`gpu ops health`, `nodes`, `queue`, `teams` and `observe-only`: what the pages show operators, from a shell."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorKind, MirrorNode
from tenants.models import Namespace
from tests.cli.command import Gpu
from tests.support.rows import make, mirrored, running

pytestmark = pytest.mark.django_db


@pytest.fixture
def gpu(gpu_of: Callable[..., Gpu], olga: User, cluster: Cluster) -> Gpu:
    mirrored.hardware_seen(cluster)
    return gpu_of(olga, "read", "admin")


def test_health_says_what_is_wrong_and_what_to_do(gpu: Gpu, namespace_a: Namespace) -> None:
    Namespace.objects.update(error_code="cluster_unavailable", error_text="It did not answer.", attempts=3)
    told = gpu("ops", "health")
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith("Degraded: ")
    assert "(task_failing): cluster_unavailable: It did not answer. (3 attempts)\n  → Fix the cause." in told.out
    found = gpu("ops", "health", "--json").json
    assert "task_failing" in [one["code"] for one in found["findings"]]
    MirrorKind.objects.filter(kind="Pod").update(problem="It refused.")
    assert gpu("ops", "health").out.startswith("No current updates from the cluster. Last update: 20")


def test_nodes_by_state_and_word(gpu: Gpu) -> None:
    MirrorNode.objects.filter(name="a100-1").update(schedulable=False)
    told = gpu("ops", "nodes")
    assert told.out.splitlines()[0].split()[:4] == ["NODE", "PRODUCT", "STATE", "RESOURCE"]
    cordoned = gpu("ops", "nodes", "--state", "cordoned", "--json").json
    assert [one["name"] for one in cordoned["items"]] == ["a100-1"]
    assert cordoned["items"][0]["devices"][0]["resource"] == "nvidia.com/gpu"
    line = next(one for one in gpu("ops", "nodes", "--search", "a100-1").out.splitlines() if one.startswith("a100-1 "))
    assert "ready, cordoned" in line
    assert gpu("ops", "nodes", "--state", "tired").code == 6


def test_queue_and_teams(gpu: Gpu, namespace_a: Namespace, a100: GpuClass, alice: User) -> None:
    make.grant(namespace_a.tenant, a100, units=2)
    running.workload(namespace_a, a100, name="waits", by=alice, kind="job")
    row = next(one for one in gpu("ops", "queue").out.splitlines() if "waits" in one)
    assert row.split()[:3] == [a100.slug, "team-a", "1"]
    assert (
        gpu("ops", "queue", "--class", a100.slug, "--team", "team-a", "--json").json["items"][0]["workload"] == "waits"
    )
    now = timezone.now()
    GpuClass.objects.filter(pk=a100.pk).update(held_since=now, held_reason="a new driver")
    assert "has been paused since" in gpu("ops", "queue").out
    told = next(one for one in gpu("ops", "teams").out.splitlines() if one.startswith("team-a "))
    assert f"{a100.slug} " in told
    assert "/2" in told
    assert "alice@example.org" in told
    assert gpu("ops", "teams", "--class", a100.slug, "--json").json["items"][0]["team"] == "team-a"
    Namespace.objects.update(error_code="cluster_unavailable", error_text="It did not answer.", attempts=3)
    assert "It did not answer." in gpu("ops", "teams", "--state", "stuck").out
    assert gpu("ops", "teams", "--state", "tired").code == 6


def test_observe_only_begins_and_ends(gpu: Gpu, cluster: Cluster) -> None:
    assert gpu("ops", "observe-only", "show").out.startswith("The portal writes to the cluster. ")
    begun = gpu("ops", "observe-only", "begin")
    assert (begun.code, " by Olga. " in begun.out) == (0, True)
    assert gpu("ops", "observe-only", "show", "--json").json["observe_only"] is True
    assert gpu("ops", "observe-only", "end").out.startswith("The portal writes to the cluster. ")
    cluster.refresh_from_db()
    assert cluster.observe_only_since is None


@pytest.mark.parametrize("words", [("health",), ("nodes",), ("queue",), ("teams",), ("observe-only", "end")])
def test_for_all_others_there_is_none(gpu_of: Callable[..., Gpu], bob: User, gpu: Gpu, words: tuple[str, ...]) -> None:
    refused = gpu_of(bob, "read", "admin")("ops", *words)
    assert (refused.code, refused.out) == (6, "")
