"""Intervals of a run equal the times in which Kueue's conditions called its Workload admitted, whenever watcher and
worker looked.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import User
from catalog.models import GpuClass
from cluster.mirror.admissions import DELETED, KEPT, UNSEEN
from cluster.mirror.writer import MirrorWriter
from cluster.models import AdmissionPeriod, AppliedObject, Cluster
from tenants.models import Namespace
from tests.cluster.mirror.items import Item, listed
from tests.support.rows import running
from tests.support.rows.interruptions import seen
from tests.workloads.allocations.histories import JOB_UID, START, History, Period, total_s
from workloads.allocations import recording
from workloads.models import AllocationInterval, Run
from workloads.runs.queries import active_run
from workloads.runs.recording import record_state

pytestmark = pytest.mark.django_db
PREEMPTED = History([(3, "admit"), (60, "Preempted"), (30, "admit"), (100, "Finished"), (5, "Deleted")])


@pytest.fixture
def run(namespace_a: Namespace, a100: GpuClass, alice: User) -> Run:
    found = running.workload(namespace_a, a100, name="train", kind="job", by=alice, units=2).runs.get()
    AppliedObject.objects.create(
        cluster_id=a100.cluster_id, owner=f"workloads.workload.{found.workload_id}", kind="Job",
        namespace=namespace_a.name, name="train-1", uid=JOB_UID, result="applied",
    )  # fmt: skip
    Run.objects.filter(pk=found.pk).update(requested_at=START)
    return found


@pytest.fixture
def mirror(cluster: Cluster) -> MirrorWriter:
    return opened(cluster)


def opened(cluster: Cluster, *items: Item) -> MirrorWriter:
    """A watcher that has just listed the Workloads, at a version before those of the histories."""
    found = MirrorWriter(cluster.pk)
    found.open()
    found.write(listed(10, kind="Workload"))
    return found


def relisted(cluster: Cluster, last: Item | None, *, version: int = 190) -> MirrorWriter:
    """Another watcher, which finds what there is then."""
    found = MirrorWriter(cluster.pk)
    found.open()
    begin, end = listed(version, kind="Workload")
    found.write([begin, *([last] if last is not None else []), end])
    return found


def recorded(run: Run) -> list[Period]:
    recording.record_admissions(run.pk)
    rows = AllocationInterval.objects.filter(run=run).order_by("starts_at")
    return [Period(row.starts_at, row.ends_at, row.end_reason) for row in rows]


# ---- random histories ------------------------------------------------------------------------------------------------

SECONDS = st.integers(0, 3600)
REASONS = st.sampled_from(["Preempted", "PodsReadyTimeout", "AdmissionCheck", "Deactivated"])


@st.composite
def histories(draw: Any) -> History:
    steps: list[tuple[int, str]] = []
    for _ in range(draw(st.integers(0, 6))):
        # An admission that is taken back in the same second is one that nobody could use; Kueue's times do not show it.
        steps += [(draw(SECONDS), "admit"), (draw(st.integers(1, 3600)), draw(REASONS))]
    match draw(st.sampled_from(["queued", "admitted", "finished", "deleted"])):
        case "admitted":
            steps.append((draw(SECONDS), "admit"))
        case "finished":
            steps += [(draw(SECONDS), "admit"), (draw(st.integers(1, 3600)), "Finished"), (1, "Deleted")]
        case "deleted":
            steps.append((draw(SECONDS), "Deleted"))
    return History(steps)


def erased() -> None:
    AllocationInterval.objects.all().delete()
    AdmissionPeriod.objects.all().delete()


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=histories(), data=st.data())
def test_no_overlap_and_no_gap_whenever_they_look(run: Run, cluster: Cluster, history: History, data: Any) -> None:
    """The watcher writes batches of any size; the worker looks after any of them, or never until the end."""
    with transaction.atomic():
        erased()
        mirror = opened(cluster)
        items = history.items()
        while items:
            size = data.draw(st.integers(1, len(items)))
            mirror.write(items[:size])
            items = items[size:]
            if data.draw(st.booleans()):
                recording.record_admissions(run.pk)
        assert recorded(run) == history.periods()
        assert all(AllocationInterval.objects.values_list("is_exact", flat=True))
        transaction.set_rollback(True)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=histories(), data=st.data())
def test_what_nobody_watched_is_marked(run: Run, cluster: Cluster, history: History, data: Any) -> None:
    """Without a watcher for a while: what is exact is true, nothing overlaps, no admission that lasts is missing."""
    with transaction.atomic():
        erased()
        items, true = history.items(), history.periods()
        away, back = sorted(data.draw(st.integers(1, len(items))) for _ in range(2))
        opened(cluster).write(items[:away])
        if data.draw(st.booleans()):
            recording.record_admissions(run.pk)
        is_there = back < len(items) or not history.steps or history.steps[-1][1] != "Deleted"
        mirror = relisted(cluster, items[back - 1] if is_there else None)
        mirror.write(items[back:])
        found = recorded(run)
        exact = {row.starts_at for row in AllocationInterval.objects.filter(is_exact=True)}
        assert [one for one in found if one.starts_at in exact] == [one for one in true if one.starts_at in exact]
        assert all(one.starts_at in {that.starts_at for that in true} for one in found)
        for one, following in pairwise(found):
            assert one.ends_at is not None
            assert one.ends_at <= following.starts_at
        assert [one for one in true if one.ends_at is None] == [one for one in found if one.ends_at is None]
        transaction.set_rollback(True)


# ---- single cases ----------------------------------------------------------------------------------------------------


def test_a_preempted_run_holds_nothing_while_it_is_queued(run: Run, mirror: MirrorWriter) -> None:
    *before, finished, _deleted = PREEMPTED.items()
    mirror.write(before[:3])
    assert [one.reason for one in recorded(run)] == ["Preempted"]
    assert not AllocationInterval.objects.filter(ends_at=None).exists()
    mirror.write([*before[3:], finished])
    found = recorded(run)
    assert found == PREEMPTED.periods()
    assert total_s(found, at=START) == 160


def test_an_interval_has_the_frozen_figures_of_its_run(run: Run, mirror: MirrorWriter, a100: GpuClass) -> None:
    GpuClass.objects.update(price_per_unit_hour="99", weight="0.5")
    mirror.write(PREEMPTED.items()[:2])
    recorded(run)
    row = AllocationInterval.objects.get()
    assert (row.gpu_class_id, row.flavor, row.units, row.priority) == (a100.pk, "a100-1f2e", 2, "batch")
    assert (row.weight, row.price_per_unit_hour) == (
        Decimal(run.spec["weight"]), Decimal(run.spec["price_per_unit_hour"]),
    )  # fmt: skip
    assert (row.source, row.queued_uid, row.is_exact) == ("queue", "queued-1", True)


def test_all_workers_of_a_gang_hold_units(run: Run, mirror: MirrorWriter) -> None:
    Run.objects.update(spec={**run.spec, "workers": 4})
    mirror.write(PREEMPTED.items()[:2])
    recorded(run)
    assert AllocationInterval.objects.get().units == 8


def test_the_end_of_a_run_is_corrected_by_that_of_its_workload(run: Run, mirror: MirrorWriter) -> None:
    """The watch of Jobs may be ahead of the one of Workloads."""
    items = PREEMPTED.items()
    mirror.write(items[:4])
    recorded(run)
    ended = START + timedelta(seconds=192)
    Run.objects.update(ended_at=ended, outcome="succeeded")
    recording.record_end(run.pk)
    last = AllocationInterval.objects.latest("starts_at")
    assert (last.ends_at, last.end_reason, last.is_exact) == (ended, "succeeded", False)
    assert recording.correct_ends() == 0, "Kueue's end is not known yet"
    mirror.write(items[4:])
    assert [recording.correct_ends() for _ in range(2)] == [1, 0]
    last.refresh_from_db()
    assert Period(last.starts_at, last.ends_at, last.end_reason) == PREEMPTED.periods()[-1]
    assert last.is_exact


def test_a_workload_that_another_replaced_ends_where_it_begins(
    run: Run, cluster: Cluster, mirror: MirrorWriter
) -> None:
    """Its deletion was not seen yet."""
    mirror.write(History([(0, "admit")]).items())
    recorded(run)
    mirror.write(History([(50, "admit")]).items(uid="queued-2"))
    first, second = recorded(run)
    assert (first.ends_at, second.ends_at) == (START + timedelta(seconds=50), None)
    assert [row.is_exact for row in AllocationInterval.objects.order_by("starts_at")] == [False, True]


def test_what_a_new_list_does_not_show_has_ended(run: Run, cluster: Cluster, mirror: MirrorWriter) -> None:
    mirror.write(PREEMPTED.items()[:2])
    recorded(run)
    relisted(cluster, None)
    (found,) = recorded(run)
    assert found.reason == DELETED
    assert not AllocationInterval.objects.get().is_exact


def test_an_admission_after_one_that_nobody_saw_end(run: Run, cluster: Cluster, mirror: MirrorWriter) -> None:
    items = PREEMPTED.items()
    mirror.write(items[:2])
    relisted(cluster, items[3], version=103)
    first, second = recorded(run)
    assert (first.reason, first.ends_at, second.ends_at) == (UNSEEN, second.starts_at, None)


def test_ended_periods_are_kept_for_a_week(run: Run, mirror: MirrorWriter) -> None:
    mirror.write(PREEMPTED.items())
    assert AdmissionPeriod.objects.count() == 2, "they are of that very batch"
    AdmissionPeriod.objects.update(ended_at=Now() - KEPT - timedelta(minutes=1))
    mirror.write(History([(0, "admit"), (9, "Deleted")]).items(uid="queued-2"))
    assert [one.uid for one in AdmissionPeriod.objects.all()] == ["queued-2"]


def test_without_a_queue_units_are_held_from_start_to_end(run: Run) -> None:
    at = START + timedelta(minutes=1)
    recording.record_start(run.pk)
    assert not AllocationInterval.objects.exists(), "it has not started"
    Run.objects.update(started_at=at)
    recording.record_start(run.pk)
    recording.record_start(run.pk)
    Run.objects.update(ended_at=at + timedelta(minutes=5), outcome="succeeded")
    recording.record_end(run.pk)
    assert recorded(run) == [Period(at, at + timedelta(minutes=5), "succeeded")]


def test_without_a_queue_a_later_look_writes_nothing(run: Run, cluster: Cluster) -> None:
    Cluster.objects.update(queue_system=Cluster.QueueSystem.NONE)
    running.make_ready(run.workload)
    Run.objects.update(admitted_at=None, started_at=None, ready_at=None)
    looks = []
    for _ in range(2):
        found = active_run(run.workload)
        with CaptureQueriesContext(connection) as captured:
            record_state(found, replace(seen(found), queue=None))
        looks.append([one["sql"] for one in captured if "allocationinterval" in one["sql"]])
    assert [len(look) for look in looks] == [1, 0]
    assert AllocationInterval.objects.get().source == "start"


def test_the_database_refuses_an_overlap(run: Run, mirror: MirrorWriter) -> None:
    mirror.write(PREEMPTED.items())
    recorded(run)
    row = AllocationInterval.objects.earliest("starts_at")
    row.pk, row.starts_at = None, row.starts_at + timedelta(seconds=1)
    with pytest.raises(IntegrityError, match="allocation_no_overlap"), transaction.atomic():
        row.save(force_insert=True)
