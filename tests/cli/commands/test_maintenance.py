"""`gpu maintenance`: what a run's page says of maintenance, and the choice, from a shell."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from operations.models import MaintenanceNode
from tenants.models import Namespace
from tests.cli.command import Gpu
from tests.operations.maintenance.choices.rows import planned, ready_run
from workloads.models import Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def gpu(gpu_of: Callable[..., Gpu], alice: User) -> Gpu:
    return gpu_of(alice, "read", "launch")


def test_show_and_choose(
    gpu: Gpu, cluster: Cluster, namespace_a: Namespace, a100: GpuClass, alice: User, olga: User
) -> None:
    plan = partial(planned, cluster, olga)
    ready_run(namespace_a, a100, alice, "mine", "a100-1", "a100-2")
    assert gpu("maintenance", "mine").out == "Its nodes are in no maintenance.\n"
    none = gpu("maintenance", "mine", "--at-drain", "stop")
    assert (none.code, none.err.strip()) == (6, "Its nodes are in no maintenance: there is nothing to choose.")
    row = plan("a100-1")
    shown = gpu("maintenance", "mine")
    assert (shown.code, shown.err) == (0, "")
    assert "restart (default)" in shown.out
    for _twice in range(2):
        done = gpu("maintenance", "mine", "--at-drain", "stop")
        assert (done.code, "stop (chosen)" in done.out) == (0, True)
    assert gpu("maintenance", "mine", "--json").json["maintenances"][0]["at_drain"] == "stop"
    other = plan("a100-2")
    several = gpu("maintenance", "mine", "--at-drain", "restart")
    assert several.code == 2
    assert f"choose one of {row.pk}, {other.pk}" in several.err
    named = gpu("maintenance", "mine", "--at-drain", "restart", "--maintenance", str(row.pk))
    assert "restart (chosen)" in named.out
    MaintenanceNode.objects.update(step="draining")
    late = gpu("maintenance", "mine", "--at-drain", "stop", "--maintenance", str(row.pk), "--json")
    assert (late.code, late.json["code"]) == (6, "drain_begun")


def test_what_nobody_chooses(
    gpu: Gpu, cluster: Cluster, namespace_a: Namespace, a100: GpuClass, alice: User, olga: User
) -> None:
    run, row = ready_run(namespace_a, a100, alice, "mine", "a100-1"), planned(cluster, olga, "a100-1")
    Run.objects.filter(pk=run.pk).update(ends_at=row.starts_at)
    done = gpu("maintenance", "mine", "--at-drain", "stop")
    assert "ends before" in done.out
    assert "(chosen)" not in done.out
    Run.objects.filter(pk=run.pk).update(ends_at=None, drain_choices={})
    Cluster.objects.update(queue_system=Cluster.QueueSystem.NONE)
    assert "stays, the drain waits" in gpu("maintenance", "mine").out


@pytest.mark.parametrize(
    ("options", "said"),
    [(("--at-drain", "leave"), "Enter for --at-drain"), (("--maintenance", "3"), "--maintenance requires --at-drain.")],
)
def test_options_that_say_nothing(gpu: Gpu, options: tuple[str, ...], said: str) -> None:
    done = gpu("maintenance", "mine", *options)
    assert done.code == 2
    assert said in done.err
