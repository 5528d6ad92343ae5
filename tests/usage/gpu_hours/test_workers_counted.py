"""Each worker holds units: every sum of runs counts all workers. Four workers of two units, beside a run of one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass, Image
from cluster.manifests.names import run_name
from cluster.models import Cluster, MirrorJob, MirrorWorkload
from desk.home.queries import home_state
from desk.nodes import queries as node_queries
from portal.core.due import owner_label
from tenants.models import Grant, Namespace, Tenant
from tests.support.rows import make, mirrored, running
from tests.support.rows.usage import held
from usage.gpu_hours.queries import MemberHours, hours_by_member
from workloads.forecast import queries as forecast_queries
from workloads.forecast.queries import LaunchSize
from workloads.launch import queries as launch_queries
from workloads.launch.options import Options
from workloads.models import Run, Workload
from workloads.pages import queries as page_queries

GANG = Options(workers=4).to_json()


@pytest.fixture
def gang(granted: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    """Four workers of two units, and a run of an older release, which had no workers."""
    old = running.workload(namespace_a, a100, name="old", by=alice, kind="job")
    run = old.runs.get()
    Run.objects.filter(pk=run.pk).update(spec={key: value for key, value in run.spec.items() if key != "workers"})
    return running.workload(namespace_a, a100, name="train", by=alice, kind="job", units=2, options=GANG)


def admit() -> None:
    Run.objects.update(admitted_at=timezone.now(), started_at=timezone.now())


def test_a_run_and_what_it_is_made_from_know_the_total(gang: Workload) -> None:
    run = gang.runs.get()
    assert (gang.units, gang.workers, gang.total_units) == (2, 4, 8)
    assert (run.spec["units"], run.workers, run.total_units) == (2, 4, 8)
    old = Run.objects.get(workload__name="old")
    assert (old.workers, old.total_units) == (1, 1)


def test_used_and_queued(gang: Workload, namespace_a: Namespace, a100: GpuClass) -> None:
    assert forecast_queries.run_units(namespace_a) == ({a100.slug: 0}, {a100.slug: 9})
    admit()
    assert forecast_queries.run_units(namespace_a) == ({a100.slug: 9}, {a100.slug: 0})


def test_what_is_ahead_and_what_it_would_cost(gang: Workload, namespace_a: Namespace, a100: GpuClass) -> None:
    Grant.objects.update(units=32)
    GpuClass.objects.update(price_per_unit_hour=2)
    found = launch_queries.reachable_classes(namespace_a)
    told = forecast_queries.outlooks(namespace_a, found, LaunchSize(2, 1, workers=4))[a100.slug]
    assert told.sentence.startswith("uses 17 of 32 GPUs; ")
    assert told.cost == "8 GPUs for 1 h: 8 GPU-hours, price 16.00"


def test_who_goes_first_is_ahead_of_whom(gang: Workload, namespace_a: Namespace, a100: GpuClass, alice: User) -> None:
    """`old` has no priority: it counts as a job's default."""
    running.workload(namespace_a, a100, name="now", by=alice, kind="job", options={"priority": "production"})
    running.workload(namespace_a, a100, name="lab", by=alice)
    old = Run.objects.get(workload__name="old")
    del old.spec["priority"]
    old.save()
    ahead = {
        priority: forecast_queries._runs(namespace_a, LaunchSize(kind="job", priority=priority))[a100.slug].ahead
        for priority in ("production", "interactive", "batch", "", "nonsense")
    }
    assert ahead == {"production": 1, "interactive": 2, "batch": 4, "": 4, "nonsense": 4}
    assert forecast_queries._runs(namespace_a, LaunchSize(kind="notebook"))[a100.slug].ahead == 2


def test_what_waits_in_the_whole_cluster(gang: Workload, a100: GpuClass) -> None:
    running.known(a100.cluster_id)
    now = timezone.now()
    for one in Workload.objects.all():
        common = {
            "cluster_id": a100.cluster_id,
            "namespace": one.namespace.name,
            "created_at": now,
            "resource_version": 1,
        }
        MirrorJob.objects.create(
            name=run_name(one.name, 1), uid=f"job-{one.pk}", owner=owner_label(one), run=run_name(one.name, 1),
            record={"labels": {}, "conditions": [], "suspend": True}, **common,
        )  # fmt: skip
        MirrorWorkload.objects.create(
            name=one.name, uid=f"queued-{one.pk}", owner="", queue="gpu-portal", job_uid=f"job-{one.pk}",
            record={"active": True, "conditions": []}, **common,
        )  # fmt: skip
    assert forecast_queries.waiting_units(a100.cluster) == {a100.slug: 9}


def test_what_runs_in_a_namespace(gang: Workload, namespace_a: Namespace) -> None:
    admit()
    assert {work.name: work.units for work in page_queries.namespace_contents(namespace_a.pk).running} == {
        "old": 1,
        "train": 8,
    }


def test_gpu_hours(gang: Workload, granted: Tenant, alice: User) -> None:
    now = timezone.now()
    Run.objects.update(started_at=now - timedelta(hours=2))
    for run in Run.objects.all():
        held(run)
    assert hours_by_member(granted, since=now - timedelta(hours=1), at=now) == [MemberHours(alice.pk, "Alice", 9.0)]


def test_the_home_of_a_team(gang: Workload, namespace_a: Namespace, a100: GpuClass) -> None:
    running.known(a100.cluster_id)
    (holding,) = home_state(namespace_a).holdings
    assert holding.queued == 9


def test_starts_now_offers_a_gang_where_one_node_has_room_for_all_of_it(
    granted: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    mirrored.hardware_seen(a100.cluster)
    Grant.objects.update(units=32)
    Image.objects.create(name="python", reference="python:3", kind="job")
    client = Client()
    client.force_login(alice)
    values = {"by": alice, "kind": "job", "image": "python:3"}
    for name, units, workers in (("fits", 1, 4), ("wide", 2, 4)):
        options = Options(workers=workers).to_json()
        found = running.workload(namespace_a, a100, name=name, units=units, options=options, **values)
        found.runs.update(ended_at=timezone.now(), outcome="stopped")
    page = client.get("/teams/team-a").content.decode()
    assert "4 GPUs, python, same as fits" in page
    assert "same as wide" not in page


def test_a_nodes_page(gang: Workload, namespace_a: Namespace, cluster: Cluster, unique: str, alice: User) -> None:
    gaudi = make.gpu_class(
        cluster, slug=f"gaudi-{unique}", name="Gaudi", resource="habana.ai/gaudi", vendor="habana",
        node_labels={"intel.feature.node.kubernetes.io/gaudi": "true"},
    )  # fmt: skip
    mirrored.hardware_seen(cluster)
    running.workload(namespace_a, gaudi, name="waits", by=alice, units=2, kind="job", options=GANG)
    work = node_queries.node_page(cluster, "gaudi").work
    assert [line.waiting_units for line in work.classes] == [8]
    assert [line.units for line in work.waiting] == [8]
