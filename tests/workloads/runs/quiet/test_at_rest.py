"""A run to which nothing happens is looked at every eight hours. What changes with time alone has a clock, what changes
in other tables wakes the row, and what is unsettled is looked at every minute. What the cluster changes is tested in
tests/cluster/mirror/relisting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.client.errors import NotFound
from cluster.client.kube import Kube
from cluster.models import AppliedObject, MirrorJob, MirrorKind, MirrorPod
from portal.core import due
from portal.core.due import Deadline, Outcome
from tenants.models import Namespace, Tenant
from tests.support.rows import make, running
from tests.support.rows.interruptions import condition, queue_says
from tests.support.rows.waiting_runs import NEEDED, mirror_wait
from workloads import tasks
from workloads.lifetime import ends
from workloads.models import RegistryCredential, Run, Workload
from workloads.runs.reconcile import RESYNC, UNSETTLED_AGAIN_S, reconcile

pytestmark = pytest.mark.django_db


class Refuses:
    """A cluster of which nothing is asked, except for what a test allows."""

    def __init__(self, **answers: Any) -> None:
        self.__dict__ |= answers


def sent(found: Workload, kind: str = "Job", **values: Any) -> AppliedObject:
    name, namespace = f"{found.name}-1", found.namespace
    key = {"cluster_id": namespace.cluster_id, "kind": kind, "namespace": namespace.name, "name": name}
    owner = due.owner_label(found)
    return AppliedObject.objects.create(
        **key, **{"owner": owner, "uid": f"job-{found.pk}", "result": "applied"} | values
    )


def look(found: Workload, kube: Any = None) -> Outcome:
    Workload.objects.update(observed_generation=1)
    row = Workload.objects.get(pk=found.pk)
    return reconcile(row, Deadline(), kube=cast(Kube, kube or Refuses()))


@pytest.fixture
def notebook(team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    """Ready, with its Secret."""
    found = running.workload(namespace_a, a100, by=alice)
    running.make_ready(found)
    sent(found)
    sent(found, "Secret", uid="")
    return found


@pytest.fixture
def queued(team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    found = running.workload(namespace_a, a100, by=alice, name="train", kind="job")
    running.known(namespace_a.cluster_id)
    mirror_wait(found, NEEDED)
    sent(found)
    return found


def is_at_rest(outcome: Outcome) -> bool:
    assert outcome.again_in_s is not None
    return outcome.again_in_s == pytest.approx(turn_of(Workload.objects.get()), abs=5)


def turn_of(found: Workload) -> float:
    return due.until_turn_s(found.pk, RESYNC, at=timezone.now())


# ---- at rest -----------------------------------------------------------------------------------------------------


def test_a_run_at_rest_is_looked_at_in_its_turn(notebook: Workload) -> None:
    assert is_at_rest(look(notebook))
    assert look(notebook).clock is None


def test_so_is_a_run_that_is_queued(queued: Workload) -> None:
    assert is_at_rest(look(queued))


def test_a_look_at_a_run_at_rest_writes_nothing_and_asks_little(
    notebook: Workload, django_assert_num_queries: Any
) -> None:
    look(notebook)
    row = Workload.objects.select_related("namespace", "volume").get()
    with django_assert_num_queries(8) as asked:
        reconcile(row, Deadline(), kube=cast(Kube, Refuses()))
    assert all(one["sql"].lstrip().startswith("SELECT") for one in asked.captured_queries)


def test_turns_are_spread_over_the_whole_period_and_stay(notebook: Workload) -> None:
    """50,000 rows that were woken together are not due together, in no minute of the period."""
    at = datetime(2026, 11, 28, 12, tzinfo=UTC)
    turns = [due.until_turn_s(pk, RESYNC, at=at) for pk in range(1, 50_001)]
    minutes = Counter(int(turn // 60) for turn in turns)
    assert min(turns) > 0
    assert max(turns) <= RESYNC.total_seconds()
    assert len(minutes) == RESYNC // timedelta(minutes=1)
    assert max(minutes.values()) < 1.1 * 50_000 / len(minutes)
    for pk in (1, 2, 77):
        first = due.until_turn_s(pk, RESYNC, at=at)
        earlier = due.until_turn_s(pk, RESYNC, at=at + timedelta(seconds=first - 10))
        later = due.until_turn_s(pk, RESYNC, at=at + timedelta(seconds=first + 10))
        assert (earlier, later) == (pytest.approx(10), pytest.approx(RESYNC.total_seconds() - 10))


def test_it_rests_while_the_mirror_is_unknown_too(notebook: Workload) -> None:
    """The watcher wakes all runs when it is known."""
    MirrorKind.objects.all().delete()
    assert is_at_rest(look(notebook))


# ---- unsettled ---------------------------------------------------------------------------------------------------


def _secret_refused(found: Workload) -> None:
    AppliedObject.objects.filter(kind="Secret").update(result="refused")


def _service_refused(found: Workload) -> None:
    Run.objects.update(spec=found.runs.get().spec | {"workers": 2})
    sent(found, "Service", uid="", result="refused")


def _login_unreadable(found: Workload) -> None:
    Run.objects.update(spec=found.runs.get().spec | {"registry": "registry.example.org"})
    RegistryCredential.objects.create(
        namespace=found.namespace, registry="registry.example.org", sealed=b"x",
        created_by=found.created_by,
    )  # fmt: skip


def _secret_missed(found: Workload) -> None:
    pod = MirrorPod.objects.get()
    [container] = pod.record["containers"]
    container |= {"state": "waiting", "ready": False, "message": f'secret "{found.name}-1" not found'}
    pod.save()


def _job_not_shown(found: Workload) -> None:
    MirrorJob.objects.all().delete()


@pytest.mark.parametrize(
    "happens", [_secret_refused, _service_refused, _login_unreadable, _secret_missed, _job_not_shown]
)
def test_what_is_refused_or_missing_is_looked_at_every_minute(
    notebook: Workload, happens: Callable[[Workload], None]
) -> None:
    happens(notebook)
    there = type("Found", (), {"uid": f"job-{notebook.pk}"})
    assert look(notebook, Refuses(get=lambda *_, **__: there)).again_in_s == UNSETTLED_AGAIN_S


def test_a_job_that_was_sent_a_moment_ago_and_is_gone_is_found(notebook: Workload) -> None:
    """Its events came before the mirror could be believed."""

    def get(*_: Any, **__: Any) -> Any:
        raise NotFound(404, "NotFound", "gone")

    MirrorJob.objects.all().delete()
    assert look(notebook, Refuses()).again_in_s == UNSETTLED_AGAIN_S
    AppliedObject.objects.update(sent_at=timezone.now() - timedelta(seconds=60))
    MirrorPod.objects.all().delete()
    look(notebook, Refuses(get=get, delete=lambda *_, **__: None))
    assert Run.objects.get().outcome == "lost"


def test_a_priority_that_kueue_does_not_report_yet(queued: Workload) -> None:
    Run.objects.update(priority="production")
    kube = Refuses(relabel=lambda *_, **__: None)
    assert look(queued, kube).again_in_s == UNSETTLED_AGAIN_S
    queue_says(queued.runs.get(), condition("QuotaReserved", "False"), preemptions=0, priority_class="production")
    assert is_at_rest(look(queued))


def test_a_move_off_its_node(queued: Workload) -> None:
    Run.objects.update(drain_requested_at=timezone.now(), drain_reason="Maintenance.")
    queue_says(queued.runs.get(), condition("QuotaReserved", "True"), preemptions=0)
    assert look(queued, Refuses(merge=lambda *_, **__: None)).again_in_s == UNSETTLED_AGAIN_S


# ---- clocks ------------------------------------------------------------------------------------------------------


def test_ends_that_are_known_are_clocks(notebook: Workload, a100: GpuClass, namespace_a: Namespace) -> None:
    """Of the time limit with its warnings, the retired class and the closed team, the first."""
    now = timezone.now()
    GpuClass.objects.update(life_cycle=GpuClass.LifeCycle.RETIRING, runs_until=now + timedelta(hours=3))
    assert look(notebook).clock == GpuClass.objects.get().runs_until
    Namespace.objects.update(
        wanted=Namespace.Wanted.CLOSED, closes_at=now + timedelta(hours=2), volumes_until=now + timedelta(days=30)
    )
    assert look(notebook).clock == Namespace.objects.get().closes_at
    Run.objects.update(spec=notebook.runs.get().spec | {"run_minutes": 60})
    clock = look(notebook).clock
    assert clock is not None
    # The first warning, a tenth of the time before the end.
    assert clock - now == pytest.approx(timedelta(minutes=54), abs=timedelta(seconds=30))


# ---- ends that other apps set --------------------------------------------------------------------------------------


def retire(until: datetime) -> None:
    GpuClass.objects.update(life_cycle=GpuClass.LifeCycle.RETIRING, runs_until=until)


def close(until: datetime) -> None:
    Namespace.objects.update(wanted=Namespace.Wanted.CLOSED, closes_at=until, volumes_until=until + timedelta(days=30))


@pytest.mark.parametrize("sets", [retire, close])
def test_an_end_that_is_set_after_the_last_look(
    notebook: Workload, sets: Callable[[datetime], None], django_assert_num_queries: Any
) -> None:
    """The row is due in hours, and who sets the end knows nothing of runs."""
    Workload.objects.update(due_at=timezone.now() + timedelta(hours=7))
    sets(timezone.now() + timedelta(minutes=5))
    with django_assert_num_queries(1):
        assert ends.wake_ended_runs() == 0
    sets(timezone.now() - timedelta(seconds=1))
    tasks.wake_ended_runs()
    assert Workload.objects.get().due_at <= timezone.now()  # type: ignore[operator]
    assert ends.wake_ended_runs() == 0, "it is due"
    # Its log is not what this is about.
    MirrorPod.objects.all().delete()
    deleted: list[str] = []
    look(notebook, Refuses(delete=lambda kind, **_: deleted.append(kind)))
    assert deleted == ["Job"]


@pytest.mark.parametrize("sets", [retire, close])
def test_a_row_that_fails_keeps_its_back_off(notebook: Workload, sets: Callable[[datetime], None]) -> None:
    """The query runs every few seconds: it would wake such a row each time, and the cluster be asked as often."""
    due_at = timezone.now() + timedelta(minutes=9)
    sets(timezone.now() - timedelta(seconds=1))
    Workload.objects.update(due_at=due_at, attempts=3, error_code="refused")
    assert ends.wake_ended_runs() == 0
    assert Workload.objects.get().due_at == due_at
    Workload.objects.update(attempts=0)
    assert ends.wake_ended_runs() == 1


def test_only_runs_on_the_class_that_have_not_ended(
    notebook: Workload, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    other = make.gpu_class(a100.cluster, slug="other")
    running.workload(namespace_a, other, by=alice, name="two")
    ended = running.workload(namespace_a, a100, by=alice, name="three")
    Run.objects.filter(workload=ended).update(ended_at=timezone.now(), outcome="stopped")
    Workload.objects.update(due_at=timezone.now() + timedelta(hours=7))
    GpuClass.objects.filter(pk=a100.pk).update(
        life_cycle=GpuClass.LifeCycle.RETIRED, runs_until=timezone.now() - timedelta(seconds=1)
    )
    assert ends.wake_ended_runs() == 1
    assert [one.pk for one in Workload.objects.filter(due_at__lte=timezone.now())] == [notebook.pk]
