"""The demo's people and catalog: made once, true of the hardware, and left alone by the next start."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models import Sum
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.classes import actions
from catalog.classes.queries import promise_limits
from catalog.images.compatibility import compatibility
from catalog.images.queries import hardware_facts
from catalog.models import GpuClass, Image
from cluster.models import AdmissionPeriod, Cluster
from devcluster.demo import seed
from devcluster.demo.sample import activity, history, idle_gpus, launching
from devcluster.demo.scenarios import MORNING, QUIET, WASTE
from tenants.models import Grant, QuotaLine, TeamRequest
from tenants.onboarding.bundles.queries import open_bundles
from tests.support.rows import mirrored
from usage.models import UsageHour, UsageSample
from usage.telemetry.models import TelemetrySource
from workloads.allocations import recording
from workloads.models import AllocationInterval, Run


@pytest.mark.django_db
def test_a_second_start_finds_everything_as_it_is(tmp_path: Path) -> None:
    accounts = tmp_path / "accounts.json"
    seed.main("people", accounts, QUIET.name)
    cluster = Cluster.objects.get()
    mirrored.hardware_seen(cluster, "mixed")
    seed.main("catalog", accounts, QUIET.name)
    assert not Run.objects.exists(), "on a real cluster a workload would use a real GPU"
    events = Event.objects.count()
    seed.main("people", accounts, QUIET.name)
    seed.main("catalog", accounts, QUIET.name)
    assert Event.objects.count() == events

    with_terms = GpuClass.objects.exclude(terms_version=0)
    assert [one.sharing for one in with_terms] == ["mps"]
    facts = hardware_facts(cluster, GpuClass.objects.exclude(vendor="")).values()
    for image in Image.objects.all():
        fitting = {one.vendor for one in facts if not compatibility(image, one)}
        assert image.vendor in fitting or not image.vendor

    offered = {bundle.name: list(bundle.lines.select_related("gpu_class")) for bundle in open_bundles()}
    assert {name: [(line.gpu_class.slug, line.units) for line in lines] for name, lines in offered.items()} == {
        "Research": [("a100-sxm4-80gb-1g-10gb-time-sliced", 2), ("a100-sxm4-80gb-1g-10gb", 1), ("storage", 200)],
        "Training": [("h100-80gb-hbm3", 2), ("storage", 500)],
        "Inference": [("a100-sxm4-80gb-1g-10gb", 2), ("storage", 50)],
    }
    limits = promise_limits([line.gpu_class for lines in offered.values() for line in lines])
    assert all(line.units <= (limits[line.gpu_class_id] or 0) for lines in offered.values() for line in lines)
    held = Grant.objects.filter(gpu_class__slug="storage").values_list("tenant__slug", "units")
    assert dict(held) == {"team-a": 100, "team-c": 200}
    [starter] = GpuClass.objects.filter(starter=True)
    assert starter.slug == "a100-sxm4-80gb-1g-10gb-time-sliced"
    assert (starter.run_hours_limit, starter.idle_stop_minutes) == (8, 60), "what is tried gives its units back"


@pytest.mark.django_db
def test_the_morning_is_there_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a cluster nothing is admitted, and nobody waits for it."""
    monkeypatch.setattr(launching, "wait_until", lambda what, is_so: None)
    accounts = tmp_path / "accounts.json"
    seed.main("people", accounts, MORNING.name)
    mirrored.hardware_seen(Cluster.objects.get(), MORNING.hardware)
    seed.main("catalog", accounts, MORNING.name)
    events = Event.objects.count()
    card = GpuClass.objects.get(resource="nvidia.com/gpu")
    assert sum(grant.units for grant in Grant.objects.filter(gpu_class=card)) == 32
    assert sum(run.total_units for run in Run.objects.filter(workload__gpu_class=card)) == 36
    launchers = {(run.workload.tenant.slug, run.requested_by.name) for run in Run.objects.all()}
    assert launchers == {("vision", "Alice"), ("serving", "Charlie"), ("lab", "Bob"), ("lab", "Erin")}

    actions.edit_class(card.pk, by=Actor(User.objects.get(name="Olga"), via="page"), borrowing_limit=0)
    seed.main("people", accounts, MORNING.name)
    seed.main("catalog", accounts, MORNING.name)
    assert Event.objects.count() == events + 1
    card.refresh_from_db()
    assert card.borrowing_limit == 0, "what somebody took back stays so"


@pytest.mark.django_db
def test_the_waste_is_there_once_and_begins_six_hours_ago(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a cluster nothing is admitted, so the test starts the runs."""
    monkeypatch.setattr(launching, "wait_until", lambda what, is_so: None)
    accounts = tmp_path / "accounts.json"
    seed.main("people", accounts, WASTE.name)
    cluster = Cluster.objects.get()
    mirrored.hardware_seen(cluster, WASTE.hardware)
    seed.main("catalog", accounts, WASTE.name)
    runs = Run.objects.filter(ended_at=None)
    assert {(run.workload.tenant.slug, run.requested_by.name.lower(), run.workload.name) for run in runs} == {
        (team, who, name) for team, who, name, _ in idle_gpus.RUNS
    }
    assert {run.total_units for run in runs} == {1}
    card = GpuClass.objects.get(resource=idle_gpus.GPU)
    assert {run.spec["price_per_unit_hour"] for run in runs} == {"3.0600"}
    assert sum(grant.units for grant in Grant.objects.filter(gpu_class=card)) == 8
    told = {run.workload.name: dict(run.spec.get("env", {})) for run in runs}
    assert {name: env.get("GPU_PROFILE", "") for name, env in told.items()} == {
        name: profile for _, _, name, profile in idle_gpus.RUNS
    }

    now = timezone.now().replace(microsecond=0)
    runs.update(admitted_at=now, started_at=now)
    for run in runs:
        recording.record_start(run.pk)
    AdmissionPeriod.objects.create(cluster_id=cluster.pk, uid="u", job_uid="j", admitted_at=now)
    for _ in range(2):  # the second time, everything is old enough
        seed.main("past", accounts, WASTE.name)
        ago = now - timedelta(hours=6)
        assert {run.started_at for run in Run.objects.all()} == {ago}
        assert [one.starts_at for one in AllocationInterval.objects.all()] == [ago] * 8
        assert [one.admitted_at for one in AdmissionPeriod.objects.all()] == [ago]
        [source] = TelemetrySource.objects.all()
        assert timedelta(0) <= source.read_until - ago.replace(second=0) <= timedelta(minutes=1), "read from there on"
    events = Event.objects.count()
    seed.main("people", accounts, WASTE.name)
    seed.main("catalog", accounts, WASTE.name)
    assert Event.objects.count() == events


@pytest.mark.django_db
def test_the_everyday_demo_has_a_past_and_things_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a cluster nothing is admitted, and nobody waits for it."""
    monkeypatch.setattr(launching, "wait_until", lambda what, is_so: None)
    accounts = tmp_path / "accounts.json"
    for _ in range(2):
        seed.main("people", accounts)
        mirrored.hardware_seen(Cluster.objects.get(), "mixed")
        seed.main("catalog", accounts)
    now = timezone.now()
    dates = list(Event.objects.order_by("id").values_list("at", flat=True))
    assert timedelta(days=30) < now - dates[0] < timedelta(days=31)
    assert dates == sorted(dates), "the history is listed by number"
    assert dates[-1] <= now

    past = Run.objects.exclude(ended_at=None)
    assert {run.outcome for run in past} == {"succeeded", "failed", "stopped"}
    assert all(run.requested_at < run.started_at < run.ended_at < now for run in past)
    [failed] = {run.reason for run in past.filter(outcome="failed")}
    assert failed == "out_of_gpu_memory"
    used = UsageSample.objects.aggregate(total=Sum("units_sum"))["total"]
    minutes = sum((run.ended_at - run.started_at) / timedelta(minutes=1) * run.total_units for run in past)
    assert used == pytest.approx(minutes)
    assert {(one.run_id, one.starts_at, one.ends_at) for one in AllocationInterval.objects.all()} >= {
        (run.pk, run.started_at, run.ended_at) for run in past
    }
    assert UsageHour.objects.count() == history.DAYS * 24

    present = {(run.workload.tenant.slug, run.workload.name) for run in Run.objects.filter(ended_at=None)}
    assert len(present) == len(activity.RUNNING) + len(activity.QUEUED)
    assert {line.request.tenant.slug for line in QuotaLine.objects.filter(state="pending")} == {"team-c", "vision"}
    assert TeamRequest.objects.count() == 1
    soon = Grant.objects.filter(period__endswith__lt=now + timedelta(days=3), period__endswith__gt=now)
    assert [(grant.tenant.slug, grant.units) for grant in soon] == [("speech", 2)]
    assert not Grant.objects.filter(tenant__slug="team-a", gpu_class__resource="nvidia.com/gpu").exists(), (
        "Alice requests whole GPUs"
    )
