"""`gpu ops maintenance`: what the pages of maintenance do, from a shell."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorKind
from operations.models import Maintenance, MaintenanceNode, MaintenanceNotice
from tenants.models import Namespace
from tests.cli.command import Gpu
from tests.support.rows import make, mirrored, running

pytestmark = pytest.mark.django_db
TOMORROW = timezone.now().astimezone(UTC).date() + timedelta(days=1)
DAY = ("--start", f"{TOMORROW}", "--end", f"{TOMORROW}")
PLAN = ("ops", "maintenance", "plan")


@pytest.fixture
def gpu(gpu_of: Callable[..., Gpu], olga: User, cluster: Cluster) -> Gpu:
    mirrored.hardware_seen(cluster)
    return gpu_of(olga, "read", "admin")


def at(hour: str) -> datetime:
    return datetime.fromisoformat(f"{TOMORROW}T{hour}+00:00")


def test_plan_list_show_and_the_controls(gpu: Gpu, namespace_a: Namespace, a100: GpuClass, alice: User) -> None:
    made = gpu(*PLAN, "a100-1", "a100-2", "--kind", "hardware", "--reason", "A broken fan", *DAY)
    row = Maintenance.objects.get()
    assert (made.code, made.err) == (0, "")
    assert made.out.startswith(f"Maintenance {row.pk}: hardware, planned.\n  reason: A broken fan\n")
    assert (row.starts_at, row.ends_at) == (at("00:00:00"), at("23:59:59")), "the last day is included"
    assert (row.stuck_minutes, row.expected, row.created_by.name) == (30, {}, "Olga")
    assert [node.name for node in row.nodes.all()] == ["a100-1", "a100-2"]

    listed = gpu("ops", "maintenance", "list")
    assert listed.out.splitlines()[0].split()[:3] == ["MAINTENANCE", "KIND", "STATE"]
    assert f"{TOMORROW} 00:00 UTC" in listed.out
    assert "a100-1, a100-2" in listed.out

    number = str(row.pk)
    run = running.workload(namespace_a, a100, name="mine", by=alice).runs.get()
    MaintenanceNotice.objects.create(maintenance=row, run=run, stage="announced")
    MaintenanceNode.objects.update(step="changing", problem="It waits.", stuck_told_at=timezone.now())
    shown = gpu("ops", "maintenance", "show", number)
    assert shown.out.startswith(f"Maintenance {number}: hardware, changing, stuck.")
    assert "It waits." in shown.out
    assert "announced  team-a  mine" in shown.out
    assert "No workload of the portal runs on these nodes." in shown.out
    assert gpu("ops", "maintenance", "show", number, "--json").json["nodes"][0]["problem"] == "It waits."

    for control, column, said in (
        ("confirm", "confirmed_at", "\n  confirmed: "),
        ("cancel", "cancel_requested_at", "changing, stuck, to be canceled."),
        ("release", "release_requested_at", "\n  released: "),
    ):
        assert said not in gpu("ops", "maintenance", "show", number).out
        done = gpu("ops", "maintenance", control, number)
        assert (done.code, said in done.out) == (0, True)
        row.refresh_from_db()
        assert getattr(row, column) is not None
        assert gpu("ops", "maintenance", control, number).code == 0, "again changes nothing"

    Maintenance.objects.update(ended_at=timezone.now(), outcome="unverified")
    assert number not in gpu("ops", "maintenance", "list").out
    assert "unverified" in gpu("ops", "maintenance", "list", "--all").out
    over = gpu("ops", "maintenance", "cancel", number, "--json")
    assert (over.code, over.json["code"], over.err.strip()) == (6, "is_over", "This maintenance is over.")


def test_a_partition_is_planned_with_the_devices_that_are_verified(gpu: Gpu) -> None:
    window = ("--start", f"{TOMORROW}T10:00", "--end", f"{TOMORROW}T12:00+00:00", "--hold", f"{TOMORROW}T09:00")
    layout = ("--mig-config", "all-1g.10gb", "--expect", "nvidia.com/mig-1g.10gb=28", "--expect", "nvidia.com/gpu=0")
    made = gpu(*PLAN, "a100-mig", "--kind", "repartition", "--reason", "Slices", *window, *layout,
               "--stuck-minutes", "20")  # fmt: skip
    assert made.code == 0, made.err
    row = Maintenance.objects.get()
    assert (row.holds_from, row.starts_at, row.ends_at) == (at("09:00"), at("10:00"), at("12:00"))
    assert (row.mig_config, row.expected) == ("all-1g.10gb", {"nvidia.com/mig-1g.10gb": 28, "nvidia.com/gpu": 0})
    assert row.stuck_minutes == 20
    assert "MIG configuration: all-1g.10gb" in made.out
    refused = gpu("ops", "maintenance", "confirm", str(row.pk))
    assert (refused.code, refused.err.strip()) == (6, "The portal itself sees when this change is done.")


def test_a_dry_run_names_whom_it_affects_and_plans_nothing(
    gpu: Gpu, cluster: Cluster, namespace_a: Namespace, alice: User
) -> None:
    whole = make.gpu_class(cluster, slug="whole", name="Whole")
    make.grant(namespace_a.tenant, whole, units=14)
    other = mirrored.pod("rogue", node="a100-1", namespace="elsewhere", **{"nvidia.com/gpu": 1})
    mirrored.hardware_seen(cluster, Pod=[other], Workload=[], Job=[])
    mine = running.workload(namespace_a, whole, name="mine", by=alice)
    running.make_ready(mine)
    pods = type(running.pod_of(mine, uid="mine-pod")).objects
    pods.filter(owner=f"workloads.workload.{mine.pk}").update(node="a100-1")
    asked = (*PLAN, "a100-1", "--kind", "driver", "--reason", "Update", *DAY, "--dry-run")
    done = gpu(*asked)
    assert (done.code, done.err) == (0, "")
    assert "team-a  mine      Alice   a100-1  restart (default)  It is moved off the node at" in done.out
    assert "pods outside the portal: elsewhere/rogue" in done.out
    assert "fewer than granted: grants cannot all be used." in done.out
    assert gpu(*asked, "--json").json["runs"][0]["workload"] == "mine"
    MirrorKind.objects.filter(kind="Pod").update(problem="It refused.")
    assert gpu(*asked).out.startswith("There are no current updates from the cluster")
    assert not Maintenance.objects.exists()
    refused = gpu(*PLAN, "no-such", *asked[4:])
    assert (refused.code, refused.out) == (6, "")
    assert "Not in the cluster: no-such." in refused.err


@pytest.mark.parametrize(
    ("option", "text", "sentence"),
    [
        ("--expect", "28", "'28' is not RESOURCE=NUMBER"),
        ("--expect", "nvidia.com/gpu=-1", "is not RESOURCE=NUMBER"),
        ("--start", "soon", "'soon' is not a date"),
        ("--hold", "2027-02-30", "'2027-02-30' is not a date"),
    ],
)
def test_what_cannot_be_meant_is_told_before_anybody_is_asked(gpu: Gpu, option: str, text: str, sentence: str) -> None:
    refused = gpu(*PLAN, "a100-1", "--kind", "other", "--reason", "Dust", *DAY, option, text)
    assert (refused.code, gpu.between.asked) == (2, [])
    assert sentence in refused.err


def test_for_all_others_there_is_none(gpu_of: Callable[..., Gpu], bob: User, gpu: Gpu) -> None:
    gpu(*PLAN, "a100-1", "--kind", "other", "--reason", "Dust", *DAY)
    number = str(Maintenance.objects.get().pk)
    bobs = gpu_of(bob, "read", "admin")
    for words in (("list",), ("show", number), ("cancel", number)):
        assert bobs("ops", "maintenance", *words).code == 6
    assert Maintenance.objects.get().cancel_requested_at is None
