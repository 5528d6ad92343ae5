"""Faults as rows: they open, are refreshed and clear by themselves; what was not seen changes nothing; people are told
once.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings as portal_settings
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from accounts.models import Delivery, Event, Notice, User
from catalog.models import GpuClass
from cluster.models import Cluster
from portal.celery import app
from portal.core.connections.prometheus_server import PrometheusServer
from tenants.models import Namespace
from tests.support.rows import make
from tests.usage.faults.rows import DEVICE, MINUTE, FakePrometheus, Fires, pod
from tests.usage.telemetry.rows import SLICE, TIME_SLICED, held_run
from usage.faults.collection import read_cluster
from usage.faults.models import FaultRun, FaultSource, GpuFault
from usage.telemetry.prometheus import PrometheusUnreadable
from workloads.models import Run

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
XID_79, XID_31 = Fires("xid", 79), Fires("xid", 31)
HOT = Fires("hot", 91)


def at(minute: int) -> datetime:
    return NOON + timedelta(minutes=minute, seconds=12)


@pytest.fixture
def run(namespace_a: Namespace, a100: GpuClass, alice: User) -> Run:
    return held_run(namespace_a, a100, alice, NOON - timedelta(hours=2), name="train")


def only() -> GpuFault:
    return GpuFault.objects.get()


def mails_to(user: User) -> list[Delivery]:
    return list(Delivery.objects.filter(user=user).order_by("pk"))


# ---- a fault opens, is refreshed and clears --------------------------------------------------------------------------


def test_a_fault_is_one_row_from_its_begin_to_its_end(cluster: Cluster) -> None:
    ask = FakePrometheus([XID_79])
    for minute in (1, 2, 3):
        read_cluster(cluster, ask, at=at(minute))
    row = only()
    assert (row.node, row.device, row.instance, row.gpu_model) == ("gpu-1", DEVICE, "", "NVIDIA A100-SXM4-80GB")
    assert (row.kind, row.code, row.value) == ("xid", 79, 79.0)
    assert (row.first_seen, row.last_seen, row.measured_at) == (
        at(1).replace(second=0),
        NOON + 3 * MINUTE,
        NOON + 3 * MINUTE,
    )
    assert row.cleared_at is None
    ask.firing, ask.measured = [], [XID_79]
    read_cluster(cluster, ask, at=at(4))
    assert (only().cleared_at, only().last_seen, only().is_gone) == (NOON + 4 * MINUTE, NOON + 3 * MINUTE, False)


def test_a_minute_is_read_once(cluster: Cluster) -> None:
    ask = FakePrometheus([])
    read_cluster(cluster, ask, at=at(1))
    with CaptureQueriesContext(connection) as queries:
        read_cluster(cluster, ask, at=at(1) + timedelta(seconds=30))
    assert (len(queries), ask.asked) == (1, [("firing", NOON + MINUTE)])


def test_a_gpu_without_metrics_is_not_healthy(cluster: Cluster) -> None:
    """Its exporter is silent, or has not measured all of the time that the rule looks back."""
    ask = FakePrometheus([XID_79, HOT])
    read_cluster(cluster, ask, at=at(1))
    ask.firing = []
    for minute in (2, 30, 600):
        read_cluster(cluster, ask, at=at(minute))
    assert {(row.kind, row.cleared_at, row.measured_at) for row in GpuFault.objects.all()} == {
        ("xid", None, NOON + MINUTE),
        ("hot", None, NOON + MINUTE),
    }
    ask.measured = [HOT]
    read_cluster(cluster, ask, at=at(601))
    assert {row.kind: row.cleared_at for row in GpuFault.objects.all()} == {"xid": None, "hot": NOON + 601 * MINUTE}


def test_nothing_clears_while_prometheus_is_away(cluster: Cluster) -> None:
    ask = FakePrometheus([XID_79])
    read_cluster(cluster, ask, at=at(1))
    ask.raises = PrometheusUnreadable("Prometheus does not respond (too slow).")
    read_cluster(cluster, ask, at=at(2))
    source = FaultSource.objects.get()
    assert (source.read_until, source.problem, source.problem_since) == (
        NOON + MINUTE,
        "Prometheus does not respond (too slow).",
        at(2),
    )
    assert (only().cleared_at, only().last_seen) == (None, NOON + MINUTE)
    ask.raises, ask.firing, ask.measured = None, [], [XID_79]
    read_cluster(cluster, ask, at=at(3))
    source.refresh_from_db()
    assert (source.problem, source.problem_since, only().cleared_at) == ("", None, NOON + 3 * MINUTE)


def test_a_failure_of_the_second_query_writes_nothing(cluster: Cluster) -> None:
    ask = FakePrometheus([XID_79])
    read_cluster(cluster, ask, at=at(1))

    def fails(query: str, start: datetime, end: datetime) -> object:
        if "UUID=~" in query:
            raise PrometheusUnreadable("Prometheus responded with status 503.")
        return FakePrometheus([HOT])(query, start, end)

    read_cluster(cluster, fails, at=at(2))  # type: ignore[arg-type]
    assert (only().kind, only().cleared_at) == ("xid", None)
    assert FaultSource.objects.get().read_until == NOON + MINUTE


def test_a_partial_answer_opens_and_does_not_clear(cluster: Cluster) -> None:
    ask = FakePrometheus([XID_79])
    read_cluster(cluster, ask, at=at(1))
    ask.firing, ask.measured, ask.is_partial = [HOT], [XID_79], True
    read_cluster(cluster, ask, at=at(2))
    assert {row.kind: row.cleared_at for row in GpuFault.objects.all()} == {"xid": None, "hot": None}


def test_a_newer_code_hides_the_older(cluster: Cluster) -> None:
    """The exporter shows only the last code. Both are over when no new one came in all of the time."""
    ask = FakePrometheus([XID_79])
    read_cluster(cluster, ask, at=at(1))
    ask.firing, ask.measured = [Fires("xid", 13)], [XID_79]
    read_cluster(cluster, ask, at=at(2))
    assert {row.code: row.cleared_at for row in GpuFault.objects.all()} == {79: None, 13: None}
    ask.firing = []
    read_cluster(cluster, ask, at=at(3))
    assert {row.code: row.cleared_at for row in GpuFault.objects.all()} == dict.fromkeys((79, 13), NOON + 3 * MINUTE)


def test_a_gpu_that_is_gone_for_days_has_no_open_fault(cluster: Cluster) -> None:
    ask = FakePrometheus([Fires("row_remap_failure")])
    read_cluster(cluster, ask, at=at(1))
    ask.firing = []
    read_cluster(cluster, ask, at=at(0) + timedelta(days=7))
    assert only().cleared_at is None
    read_cluster(cluster, ask, at=at(2) + timedelta(days=7))
    assert (only().cleared_at, only().is_gone) == (NOON + timedelta(days=7, minutes=2), True)


def test_a_fault_that_returns_soon_is_the_same(cluster: Cluster) -> None:
    ask = FakePrometheus([HOT], measured=[HOT])
    read_cluster(cluster, ask, at=at(1))
    ask.firing = []
    read_cluster(cluster, ask, at=at(2))
    ask.firing = [HOT]
    read_cluster(cluster, ask, at=at(50))
    assert (only().first_seen, only().cleared_at) == (NOON + MINUTE, None)
    ask.firing = []
    read_cluster(cluster, ask, at=at(51))
    ask.firing = [HOT]
    read_cluster(cluster, ask, at=at(180))
    assert [row.cleared_at for row in GpuFault.objects.order_by("pk")] == [NOON + 51 * MINUTE, None]


def test_after_a_time_without_a_look_the_queries_look_back_over_it(cluster: Cluster) -> None:
    windows = []

    def ask(query: str, start: datetime, end: datetime) -> object:
        windows.append(query.partition("[")[2].partition(":")[0])
        return FakePrometheus([])(query, start, end)

    for minute in (1, 2, 25, 400):
        read_cluster(cluster, ask, at=at(minute))  # type: ignore[arg-type]
    assert windows == ["10m", "10m", "23m", "60m"]


def test_what_no_exporter_writes_is_ignored(cluster: Cluster) -> None:
    read_cluster(
        cluster,
        FakePrometheus([Fires("xid", 79, 'GPU-1"} or up{a="'), Fires("xid", 1e12), Fires("xid", -1), Fires("melted")]),
        at=at(1),
    )
    assert not GpuFault.objects.exists()


def test_a_slower_worker_changes_nothing(cluster: Cluster) -> None:
    fast = FakePrometheus([XID_79])

    def slow(query: str, start: datetime, end: datetime) -> object:
        if not FaultSource.objects.exists() or FaultSource.objects.get().read_until != NOON + 3 * MINUTE:
            read_cluster(cluster, fast, at=at(3))
        return FakePrometheus([HOT])(query, start, end)

    read_cluster(cluster, fast, at=at(1))
    read_cluster(cluster, slow, at=at(2))  # type: ignore[arg-type]
    assert (only().kind, FaultSource.objects.get().read_until) == ("xid", NOON + 3 * MINUTE)


# ---- runs and people -------------------------------------------------------------------------------------------------


def test_people_of_the_run_and_operators_are_told_once(cluster: Cluster, run: Run, alice: User, olga: User) -> None:
    ask = FakePrometheus([XID_79], [pod(run)], [XID_79])
    for minute in (1, 2, 3):
        read_cluster(cluster, ask, at=at(minute))
    [mail] = mails_to(alice)
    assert mail.subject == f"train of {run.workload.tenant.name}: XID 79: GPU has fallen off the bus"
    assert DEVICE in mail.body
    assert "what they had only in memory is lost" in mail.body
    assert mail.body.endswith("/workloads/train")
    assert Notice.objects.get(user=alice).link.endswith("/workloads/train")
    [to_operator] = mails_to(olga)
    assert to_operator.subject == "XID 79: GPU has fallen off the bus on node gpu-1"
    assert "kubectl cordon gpu-1" in to_operator.body
    assert [event.verb for event in Event.objects.order_by("pk")] == ["run.gpu_fault_told", "gpu.fault_told"]
    # It clears, and is back within the hour: the same fault.
    ask.firing = []
    read_cluster(cluster, ask, at=at(4))
    ask.firing = [XID_79]
    read_cluster(cluster, ask, at=at(30))
    assert (len(mails_to(alice)), len(mails_to(olga))) == (1, 1)


def test_an_error_of_a_program_is_told_to_its_people_alone(cluster: Cluster, run: Run, alice: User, olga: User) -> None:
    read_cluster(cluster, FakePrometheus([XID_31], [pod(run)]), at=at(1))
    [mail] = mails_to(alice)
    assert "A GPU of train reported a fault: XID 31: memory page fault" in mail.body
    assert "compute-sanitizer" in mail.body
    assert mails_to(olga) == []


def test_a_run_that_starts_after_an_error_had_no_part_in_it(
    cluster: Cluster, run: Run, namespace_a: Namespace, a100: GpuClass, bob: User
) -> None:
    """The code is there for ten minutes. A GPU that is hot or cannot remap rows concerns those that start then too."""
    late = held_run(namespace_a, a100, bob, NOON + 2 * MINUTE, name="late")
    remap = Fires("row_remap_failure")
    ask = FakePrometheus([XID_31, remap], [pod(run)])
    read_cluster(cluster, ask, at=at(1))
    ask.pods = [pod(late)]
    read_cluster(cluster, ask, at=at(4))
    linked = {(one.fault.kind, one.run_id) for one in FaultRun.objects.select_related("fault")}
    assert linked == {("xid", run.pk), ("row_remap_failure", run.pk), ("row_remap_failure", late.pk)}
    assert [mail.subject.partition(": ")[2] for mail in mails_to(bob)] == ["row remapping failure"]


def test_a_pod_that_ended_with_the_error_is_concerned(
    cluster: Cluster, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    ended = held_run(namespace_a, a100, alice, NOON - 90 * MINUTE, NOON - timedelta(seconds=30))
    before = held_run(namespace_a, a100, alice, NOON - 90 * MINUTE, NOON - 20 * MINUTE)
    read_cluster(cluster, FakePrometheus([XID_79], [pod(ended), pod(before)]), at=at(1))
    assert [one.run_id for one in FaultRun.objects.all()] == [ended.pk]


def test_a_run_on_several_gpus_gets_one_mail_for_each_kind(
    cluster: Cluster, namespace_a: Namespace, a100: GpuClass, alice: User, olga: User
) -> None:
    run = held_run(namespace_a, a100, alice, NOON - 90 * MINUTE, units=4)
    devices = [f"GPU-{number}" for number in range(4)]
    pods = [pod(run, device) for device in devices]
    ask = FakePrometheus([Fires("hot", 90, device) for device in devices[:3]], pods)
    read_cluster(cluster, ask, at=at(1))
    [mail] = mails_to(alice)
    assert "GPU-0, GPU-1, GPU-2" in mail.body
    assert [one.subject for one in mails_to(olga)] == ["3 GPU faults on node gpu-1"]
    ask.firing.append(Fires("hot", 90, devices[3]))
    read_cluster(cluster, ask, at=at(2))
    assert len(mails_to(alice)) == 1
    assert FaultRun.objects.filter(run=run, told_at=None).count() == 0


@pytest.mark.parametrize(("kind", "value", "linked"), [("xid", 31, 0), ("xid", 79, 2), ("hot", 90, 2)])
def test_a_program_of_one_of_several_slices_is_of_none(
    cluster: Cluster, namespace_a: Namespace, alice: User, kind: str, value: float, linked: int
) -> None:
    mig = make.gpu_class(cluster, slug="slice", **SLICE)
    runs = [held_run(namespace_a, mig, alice, NOON - 90 * MINUTE) for _ in range(2)]
    pods = [pod(one, instance=str(7 + number)) for number, one in enumerate(runs)]
    read_cluster(cluster, FakePrometheus([Fires(kind, value)], pods), at=at(1))
    assert FaultRun.objects.count() == linked


def test_a_code_of_a_slice_is_of_its_run(cluster: Cluster, namespace_a: Namespace, alice: User) -> None:
    mig = make.gpu_class(cluster, slug="slice", **SLICE)
    runs = [held_run(namespace_a, mig, alice, NOON - 90 * MINUTE) for _ in range(2)]
    pods = [pod(one, instance=str(7 + number)) for number, one in enumerate(runs)]
    read_cluster(cluster, FakePrometheus([Fires("xid", 31, instance="8")], pods), at=at(1))
    assert [one.run_id for one in FaultRun.objects.all()] == [runs[1].pk]
    assert only().instance == "8"


@pytest.mark.parametrize(("value", "linked"), [(31, 0), (79, 1)])
def test_an_exporter_names_one_of_the_pods_that_share_a_gpu(
    cluster: Cluster, namespace_a: Namespace, alice: User, value: float, linked: int
) -> None:
    """The program that failed may be another one's; a fault of the GPU is of the named one for certain."""
    shared = make.gpu_class(cluster, slug="shared", **TIME_SLICED)
    run = held_run(namespace_a, shared, alice, NOON - 90 * MINUTE)
    read_cluster(cluster, FakePrometheus([Fires("xid", value)], [pod(run)]), at=at(1))
    assert FaultRun.objects.count() == linked


def test_a_pod_of_no_run_is_told_to_nobody(cluster: Cluster, run: Run, alice: User) -> None:
    foreign = {"namespace": "others", "pod": "their-1-abcde", "UUID": DEVICE}
    read_cluster(cluster, FakePrometheus([XID_79], [foreign]), at=at(1))
    assert (FaultRun.objects.count(), mails_to(alice)) == (0, [])


# ---- cost ------------------------------------------------------------------------------------------------------------


def test_at_most_three_queries_to_prometheus(cluster: Cluster, run: Run) -> None:
    """With the three times five of usage.telemetry: 18 of the 20 that a minute may have."""
    ask = FakePrometheus([], [pod(run)])
    read_cluster(cluster, ask, at=at(1))
    assert [name for name, _ in ask.asked] == ["firing"]
    ask.firing = [Fires("hot", 90, f"GPU-{number}") for number in range(200)]
    read_cluster(cluster, ask, at=at(2))
    ask.asked.clear()
    ask.firing = ask.firing[:100]
    read_cluster(cluster, ask, at=at(3))
    assert [name for name, _ in ask.asked] == ["firing", "measured", "holders"]


def test_queries_to_the_database_do_not_grow(cluster: Cluster, a100: GpuClass, alice: User) -> None:
    """With GPUs, faults, teams and runs that were told."""

    def counted(number: int) -> int:
        begin = 10 * number
        ask = FakePrometheus(
            [Fires("hot", 90, f"GPU-{one}") for one in range(number)],
            [pod(run, f"GPU-{index}") for index, run in enumerate(runs)],
        )
        read_cluster(cluster, ask, at=at(begin))
        with CaptureQueriesContext(connection) as queries:
            read_cluster(cluster, ask, at=at(begin + 1))
        return len(queries)

    def more(number: int) -> None:
        for _ in range(number):
            team = make.tenant(cluster, slug=f"team-{len(runs)}")
            runs.append(held_run(team.namespaces.get(), a100, alice, NOON - 90 * MINUTE))

    runs: list[Run] = []
    more(2)
    few = counted(2)
    more(10)
    assert counted(60) == few <= 18


# ---- the task --------------------------------------------------------------------------------------------------------


def test_beat_asks_for_it_and_the_task_reads(cluster: Cluster, unused_tcp_port: int) -> None:
    [entry] = [one for one in portal_settings.CELERY_BEAT_SCHEDULE.values() if one["task"] == "usage.faults.read"]
    assert (entry["schedule"], entry["options"]["queue"]) == (15.0, "background")
    app.autodiscover_tasks(force=True)
    with override_settings(PROMETHEUS=None):
        app.tasks[entry["task"]].run()
    assert not FaultSource.objects.exists()
    with override_settings(PROMETHEUS=PrometheusServer(f"http://127.0.0.1:{unused_tcp_port}")):
        app.tasks[entry["task"]].run()
    assert FaultSource.objects.get().problem == "Prometheus does not respond (ConnectionError)."
