"""Idle checks of notebooks: users are notified and idle notebooks stop; a computing or silent notebook never stops."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from cluster.client.jupyter import Kernel, NotebookActivity, NotebookUnreachable
from cluster.client.kube import Kube
from cluster.models import MirrorEpoch, MirrorPod
from portal.core import due
from portal.core.due import DONE, Deadline, Outcome
from portal.core.errors import Refused
from tenants.models import Namespace
from tests.support.rows import running
from workloads.credentials.notebook_token import notebook_token
from workloads.launch import actions
from workloads.lifetime.idle import actions as idle_actions
from workloads.lifetime.idle import queries as idle_queries
from workloads.lifetime.idle import reconcile as idle_reconcile
from workloads.models import NotebookWatch, Run, Workload
from workloads.runs.reconcile import reconcile

pytestmark = pytest.mark.django_db
Asked = Callable[[str, str], NotebookActivity]


@pytest.fixture
def watched(namespace_a: Namespace, a100: GpuClass, alice: User) -> NotebookWatch:
    """Alice's ready notebook, on a class whose idle notebooks stop after an hour."""
    GpuClass.objects.filter(pk=a100.pk).update(idle_stop_minutes=60)
    a100.refresh_from_db()
    found = running.workload(namespace_a, a100, by=alice)
    running.make_ready(found)
    idle_reconcile.start_watch(Run.objects.get(workload=found))
    return NotebookWatch.objects.get()


def activity(used: datetime, *states: str) -> Asked:
    """The answer of a server that was last used at this time, with a kernel in each of these states."""
    found = NotebookActivity(used, 0, tuple(Kernel(state, used, 0) for state in states))
    return lambda _ip, _token: found


def silent(_ip: str, _token: str) -> NotebookActivity:
    raise NotebookUnreachable("It does not answer.")


def look(ask: Asked, at: datetime | None = None) -> Outcome:
    return idle_reconcile.check_idle(NotebookWatch.objects.get(), Deadline(), ask=ask, at=at)


def is_stopped() -> bool:
    return Run.objects.get().stop_requested_at is not None


NOW = timezone.now().replace(microsecond=0)
USED = NOW - timedelta(minutes=55)


def test_the_row_is_there_when_the_run_is_ready_and_only_with_a_rule(
    namespace_a: Namespace, a100: GpuClass, alice: User, kube_worker: Kube, django_assert_num_queries: Any
) -> None:
    free = running.workload(namespace_a, a100, by=alice, name="free")
    run = free.runs.get()
    with django_assert_num_queries(0):
        idle_reconcile.start_watch(run)
    GpuClass.objects.filter(pk=a100.pk).update(idle_stop_minutes=60)
    a100.refresh_from_db()
    job = running.workload(namespace_a, a100, by=alice, name="train", kind="job")
    assert job.runs.get().spec["idle_stop_minutes"] is None
    found = running.workload(namespace_a, a100, by=alice)
    idle_reconcile.start_watch(found.runs.get())
    idle_reconcile.start_watch(found.runs.get())
    assert [watch.run.workload for watch in NotebookWatch.objects.all()] == [found]


def test_only_its_own_pod_is_asked_with_its_own_token(watched: NotebookWatch) -> None:
    asked: list[tuple[str, str]] = []

    def ask(ip: str, token: str) -> NotebookActivity:
        asked.append((ip, token))
        return activity(NOW)(ip, token)

    look(ask, NOW)
    token = notebook_token(settings.NOTEBOOK_TOKEN_KEY, workload_id=watched.run.workload_id, run_number=1)
    assert asked == [(running.IP, token)]
    MirrorPod.objects.update(deleting_since=NOW)
    look(ask, NOW)
    assert len(asked) == 1
    assert NotebookWatch.objects.get().problem == "It has no running pod at the moment."


def test_people_are_told_once_and_then_it_is_stopped_with_its_evidence(watched: NotebookWatch, alice: User) -> None:
    look(activity(USED, "idle", "idle"), NOW)
    look(activity(USED, "idle", "idle"), NOW + timedelta(minutes=1))
    [mail] = Delivery.objects.all()
    assert mail.user == alice
    assert "one of Team A is idle and is stopped at" in mail.subject
    assert mail.subject.endswith(" UTC"), "a mail is read in any time zone"
    assert "2 kernels idle; checked at" in mail.body
    assert "/teams/team-a/workloads/one" in mail.body
    assert NotebookWatch.objects.get().stops_at == NOW + timedelta(minutes=10)
    assert not is_stopped()

    outcome = look(activity(USED, "idle", "idle"), NOW + timedelta(minutes=10))
    run = Run.objects.get()
    assert is_stopped()
    assert run.stop_reason == "idle"
    assert run.stop_message.startswith("Stopped because it was idle for 1 h: last activity ")
    assert "; 2 kernels idle; checked at " in run.stop_message
    [over] = Delivery.objects.filter(event__verb="notebook.idle_stopped")
    assert "It has no volume: files are deleted when it stops" in over.body
    assert "Start it again" in over.body
    [event] = Event.objects.filter(verb="notebook.idle_stopped")
    assert (event.actor, event.after["evidence"]) == (
        "system rule idle notebooks",
        idle_queries.evidence_text(watched_now()),
    )
    assert Workload.objects.get().due_at is not None, "the worker takes its Job away"
    assert outcome.clock is not None
    assert look(activity(USED), NOW + timedelta(minutes=12)) == DONE
    assert Event.objects.filter(verb="notebook.idle_stopped").count() == 1
    assert Delivery.objects.count() == 2


def watched_now() -> NotebookWatch:
    return NotebookWatch.objects.get()


def test_the_run_ends_with_the_rules_words(watched: NotebookWatch, kube_worker: Kube) -> None:
    look(activity(USED), NOW)
    look(activity(USED), NOW + timedelta(minutes=10))
    MirrorPod.objects.all().delete()
    reconcile(Workload.objects.get(), Deadline(), kube=kube_worker)
    run = Run.objects.get()
    assert (run.outcome, run.reason) == ("stopped", "idle")
    assert run.message == run.stop_message


@pytest.mark.parametrize("ask", [activity(USED, "busy"), activity(USED, "idle", "busy"), silent])
def test_what_computes_or_is_silent_is_never_stopped(watched: NotebookWatch, ask: Asked) -> None:
    look(activity(USED, "idle"), NOW)
    for hours in (1, 10, 100):
        look(ask, NOW + timedelta(hours=hours))
    assert not is_stopped()
    assert Event.objects.filter(verb="notebook.idle_warned").count() == 1


def test_silence_is_told_and_the_last_answer_stays(watched: NotebookWatch) -> None:
    look(activity(USED, "idle"), NOW)
    look(silent, NOW + timedelta(hours=1))
    found = watched_now()
    assert (found.problem, found.answered_at, found.asked_at) == ("It does not answer.", NOW, NOW + timedelta(hours=1))
    assert found.last_activity == USED
    assert found.stops_at == NOW + timedelta(minutes=10)


def test_the_cluster_that_was_not_read_is_no_idle_notebook(watched: NotebookWatch) -> None:
    MirrorEpoch.objects.all().delete()
    look(activity(USED), NOW)
    assert watched_now().problem == "The portal has not read the cluster yet."


def test_use_takes_the_threat_back_and_the_next_one_is_told_anew(watched: NotebookWatch) -> None:
    look(activity(USED), NOW)
    look(activity(NOW + timedelta(minutes=5)), NOW + timedelta(minutes=6))
    found = watched_now()
    assert (found.warned_at, found.stops_at) == (None, None)
    later = NOW + timedelta(hours=2)
    look(activity(NOW + timedelta(minutes=5)), later)
    assert watched_now().stops_at == later + timedelta(minutes=10)
    assert Delivery.objects.count() == 2


def test_what_ended_or_was_asked_to_stop_is_not_asked_any_more(watched: NotebookWatch, alice: User) -> None:
    actions.stop("team-a", "one", by=Actor(user=alice, via="page"))

    def never(_ip: str, _token: str) -> NotebookActivity:
        raise AssertionError("asked")

    assert look(never) == DONE


def test_the_row_rests_until_the_rule_could_fire(watched: NotebookWatch) -> None:
    """The row's due time skips minutes in which the rule cannot apply: one look, and then minutes without one."""
    claimed = due.claim(NotebookWatch)
    assert claimed is not None
    due.run_claimed(claimed, partial(idle_reconcile.check_idle, ask=activity(timezone.now())))
    assert due.claim(NotebookWatch) is None
    left = NotebookWatch.objects.get().due_at
    assert left is not None
    assert timedelta(minutes=9) < left - timezone.now() <= timedelta(minutes=10)


def test_a_look_costs_as_much_as_one_notebook(watched: NotebookWatch, django_assert_num_queries: Any) -> None:
    watch = NotebookWatch.objects.get()
    # run; mirror: known, pods; savepoint, watch, run, what was seen, its release
    with django_assert_num_queries(8):
        idle_reconcile.check_idle(watch, Deadline(), ask=activity(NOW), at=NOW)


# ---- keeping an idle notebook ----------------------------------------------------------------------------------------


def keep(by: User, hours: int = 2, reason: str = "waits for a colleague") -> NotebookWatch:
    return idle_actions.keep_notebook("team-a", "one", hours=hours, reason=reason, by=Actor(user=by, via="page"))


def test_what_is_kept_stays_for_its_hours_and_is_told_of_again(watched: NotebookWatch, alice: User) -> None:
    look(activity(USED), NOW)
    found = keep(alice)
    assert (found.warned_at, found.stops_at, found.kept_reason) == (None, None, "waits for a colleague")
    assert found.kept_until is not None
    event = Event.objects.get(verb="notebook.kept")
    assert (event.actor_id, event.after["reason"]) == (alice.pk, "waits for a colleague")
    look(activity(USED), found.kept_until - timedelta(minutes=1))
    assert not is_stopped()
    assert Delivery.objects.count() == 1
    look(activity(USED), found.kept_until)
    assert Delivery.objects.count() == 2
    assert watched_now().stops_at == found.kept_until + timedelta(minutes=10)
    look(activity(USED), found.kept_until + timedelta(minutes=10))
    assert is_stopped()


def test_keeping_while_its_server_is_asked_is_heard(watched: NotebookWatch, alice: User) -> None:
    look(activity(USED), NOW)

    def meanwhile(ip: str, token: str) -> NotebookActivity:
        keep(alice)
        return activity(USED)(ip, token)

    look(meanwhile, NOW + timedelta(minutes=10))
    assert not is_stopped()


def test_who_may_keep_and_for_how_long(watched: NotebookWatch, alice: User, bob: User, charlie: User) -> None:
    for who, status in ((bob, 403), (charlie, 404)):
        with pytest.raises(Refused) as refused:
            keep(who)
        assert refused.value.refusal.status == status
    with pytest.raises(Refused, match=r"25 h requested\. Enter 1 to 24 h"):
        keep(alice, hours=25)
    with pytest.raises(Refused, match="Enter a reason of 1 to 200 characters"):
        keep(alice, reason=" ")
    assert watched_now().kept_until is None


def test_without_a_rule_there_is_nothing_to_keep(namespace_a: Namespace, a100: GpuClass, alice: User) -> None:
    running.make_ready(running.workload(namespace_a, a100, by=alice))
    with pytest.raises(Refused, match="No rule stops this notebook"):
        keep(alice)


def test_a_notebook_that_is_only_asked_is_not_stopped_or_kept(
    namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    """Its class has an idle action for GPUs, which wants the answers, and no limit for idle notebooks."""
    found = running.workload(namespace_a, a100, by=alice)
    running.make_ready(found)
    NotebookWatch.objects.create(run=found.runs.get())
    look(activity(USED, "idle"), NOW)
    look(activity(USED, "idle"), NOW + timedelta(hours=100))
    watch = watched_now()
    assert (watch.last_activity, watch.evidence["idle"], watch.stops_at) == (USED, 1, None)
    assert not is_stopped()
    assert not Delivery.objects.exists()
    with pytest.raises(Refused, match="No rule stops this notebook"):
        keep(alice)
