"""A run's time limit: set at the start, announced before it is reached, enforced, and extended within the maximum."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, Scope, User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import AppliedObject, MirrorPod
from cluster.reads.observed import Condition
from cluster.reads.observed import KueueWorkload as Queued
from portal.core.due import Deadline, Outcome
from portal.core.errors import Refused
from tenants.models import Membership, Namespace, Tenant
from tests.support.rows import make, running
from workloads.core.observation import Observation
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.lifetime.run_time import actions as run_time_actions
from workloads.lifetime.run_time import reconcile as run_time_reconcile
from workloads.models import Run, Workload
from workloads.runs.reconcile import reconcile

pytestmark = pytest.mark.django_db
EIGHT = 8 * 60


@pytest.fixture
def started(namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    """Alice's notebook with 8 h, whose pod started an hour ago; its Job was sent."""
    GpuClass.objects.filter(pk=a100.pk).update(run_hours_limit=12)
    a100.refresh_from_db()
    found = running.workload(namespace_a, a100, by=alice, options={"run_hours": 8})
    running.make_ready(found)
    began(timezone.now() - timedelta(hours=1))
    Workload.objects.update(observed_generation=1)
    AppliedObject.objects.create(
        cluster_id=namespace_a.cluster_id,
        owner=f"workloads.workload.{found.pk}",
        kind="Job",
        namespace=namespace_a.name,
        name="one-1",
        uid=f"job-{found.pk}",
        result="applied",
    )
    secret = {"kind": "Secret", "namespace": namespace_a.name, "name": "one-1", "result": "applied"}
    AppliedObject.objects.create(cluster_id=namespace_a.cluster_id, owner=f"workloads.workload.{found.pk}", **secret)
    return found


def began(at: datetime) -> datetime:
    """Sets the start as the cluster reports it, in whole seconds, and returns it."""
    told = at.replace(microsecond=0).astimezone(UTC)
    Run.objects.update(requested_at=told - timedelta(minutes=20))
    for pod in MirrorPod.objects.all():
        pod.record["containers"][0]["since"] = told.isoformat()
        pod.save()
    return told


def look(found: Workload, kube: Kube) -> Outcome:
    return reconcile(Workload.objects.get(pk=found.pk), Deadline(), kube=kube)


def test_it_is_over_so_long_after_the_start_and_waiting_does_not_count(started: Workload, kube_worker: Kube) -> None:
    since = began(timezone.now() - timedelta(hours=1))
    outcome = look(started, kube_worker)
    run = Run.objects.get()
    assert run.spec["run_minutes"] == EIGHT
    assert run.ends_at == since + timedelta(hours=8)
    assert outcome.clock == run.ends_at - timedelta(minutes=30), "the row is due when people are to be told"
    assert not Delivery.objects.exists()


def test_what_was_preempted_counts_anew_when_it_starts_again(started: Workload, kube_worker: Kube) -> None:
    look(started, kube_worker)
    Run.objects.update(extended_minutes=60)
    again = began(timezone.now() - timedelta(minutes=5))
    look(started, kube_worker)
    assert Run.objects.get().ends_at == again + timedelta(hours=9)


def test_what_waits_in_the_queue_again_has_no_end(started: Workload) -> None:
    run = Run.objects.select_related("workload").get()
    Run.objects.update(ends_at=timezone.now())
    run.refresh_from_db()
    now = timezone.now()
    evicted = Condition("Admitted", "False", "Preempted", "", now)
    fields: dict[str, Any] = dict.fromkeys(Queued.__dataclass_fields__)
    queue = Queued(**{**fields, "conditions": (evicted,)})
    assert run_time_reconcile.sync_deadline(run, Observation(queue=queue))
    assert Run.objects.get().ends_at is None


def test_a_run_without_an_end_has_none(started: Workload, kube_worker: Kube) -> None:
    run = Run.objects.get()
    run.spec["run_minutes"] = None
    run.save()
    look(started, kube_worker)
    assert Run.objects.get().ends_at is None
    assert run_time_reconcile.next_moment_of(Run.objects.get()) is None


# ---- notifications before the end ------------------------------------------------------------------------------------


def ends_in(minutes: float) -> datetime:
    """Sets the end of an eight-hour run to that many minutes from now."""
    return began(timezone.now() + timedelta(minutes=minutes) - timedelta(hours=8)) + timedelta(hours=8)


def test_people_are_told_half_an_hour_and_five_minutes_before_each_once(
    started: Workload, kube_worker: Kube, alice: User
) -> None:
    ends_in(29)
    for _ in range(3):
        look(started, kube_worker)
    [first] = Delivery.objects.all()
    assert first.user == alice
    assert first.subject.startswith("one of Team A reaches its time limit at ")
    assert first.subject.endswith(" UTC"), "a mail is read in any time zone"
    assert "one reaches its time limit of 8 h at" in first.body
    assert "/teams/team-a/workloads/one" in first.body
    ends_at = Run.objects.get().ends_at
    assert ends_at is not None
    run = Run.objects.select_related("workload").get()
    for minutes in (4, 3, 0):
        run_time_reconcile._warn(run.pk, ends_at - timedelta(minutes=minutes))
    assert Delivery.objects.count() == 2
    assert list(Event.objects.filter(verb="run.reminded").values_list("after__lead_s", flat=True)) == [1800, 300]


def test_who_was_told_of_five_minutes_is_not_told_of_thirty(started: Workload, kube_worker: Kube) -> None:
    ends_in(4)
    look(started, kube_worker)
    look(started, kube_worker)
    assert [event.after["lead_s"] for event in Event.objects.filter(verb="run.reminded")] == [300]


def test_a_later_end_is_told_of_anew(started: Workload, kube_worker: Kube, alice: User) -> None:
    ends_in(20)
    look(started, kube_worker)
    run_time_actions.extend("team-a", "one", hours=1, by=Actor(user=alice, via="page"))
    look(started, kube_worker)
    assert Delivery.objects.count() == 1
    run = Run.objects.get()
    assert run.ends_at is not None
    run_time_reconcile._warn(run.pk, run.ends_at - timedelta(minutes=20))
    assert Delivery.objects.count() == 2


def test_who_left_the_team_is_not_told_but_its_managers_are(
    started: Workload, kube_worker: Kube, team_a: Tenant, alice: User
) -> None:
    dora = make.user("Dora")
    make.member(team_a, dora, Membership.Role.MANAGER)
    ends_in(60)
    look(started, kube_worker)
    run = Run.objects.get()
    assert run.ends_at is not None
    Membership.objects.filter(user=alice).delete()
    run_time_reconcile._warn(run.pk, run.ends_at - timedelta(minutes=20))
    assert [one.user for one in Delivery.objects.all()] == [dora]


# ---- end of the time limit -------------------------------------------------------------------------------------------


def test_it_is_stopped_when_its_time_is_over(started: Workload, kube_worker: Kube, alice: User) -> None:
    ends_in(0)
    look(started, kube_worker)
    Run.objects.update(ends_at=timezone.now() - timedelta(seconds=1))
    look(started, kube_worker)
    run = Run.objects.get()
    assert run.stop_requested_at is not None
    assert run.stop_reason == "run_time_over"
    [event] = Event.objects.filter(verb="run.time_over")
    assert (event.actor, event.after["minutes"], event.tenant) == ("system rule time limit", EIGHT, "team-a")
    # Its Job never existed in this cluster: only the end of the run is left to do.
    MirrorPod.objects.all().delete()
    AppliedObject.objects.filter(kind="Job").delete()
    look(started, kube_worker)
    run.refresh_from_db()
    assert (run.outcome, run.reason) == ("stopped", "run_time_over")
    assert run.message.startswith("It reached its time limit of 8 h at ")
    assert Event.objects.filter(verb="run.time_over").count() == 1
    [mail] = Delivery.objects.filter(event__verb="run.time_over")
    assert (mail.user, mail.subject) == (alice, "one of Team A was stopped at its time limit")
    assert mail.body.startswith("It reached its time limit of 8 h at ")
    assert "It has no volume: files are deleted when it stops" in mail.body
    assert "Start it again" in mail.body
    assert mail.body.endswith("/teams/team-a/workloads/one")


@pytest.mark.parametrize(
    ("claim", "path", "words"),
    [
        ("", "", "It has no volume: files are deleted when it stops, and memory is lost."),
        ("data", "/home/work", "Files in /home/work are kept on the volume data; memory is lost."),
        (
            "data", "/home/work/data",
            "Files in /home/work/data are kept on the volume data; other files and memory are lost.",
        ),
    ],
)  # fmt: skip
def test_its_mails_say_what_becomes_of_its_files(
    started: Workload, kube_worker: Kube, claim: str, path: str, words: str
) -> None:
    ends_in(4)
    Run.objects.update(spec={**Run.objects.get().spec, "claim": claim, "mount_path": path})
    look(started, kube_worker)
    Run.objects.update(ends_at=timezone.now() - timedelta(seconds=1))
    assert run_time_reconcile.end_overdue(Run.objects.get())
    assert [mail.event.verb for mail in Delivery.objects.order_by("pk")] == ["run.reminded", "run.time_over"]
    assert [words for mail in Delivery.objects.all() if words not in mail.body] == []


def test_who_was_told_that_it_was_stopped_is_not_told_twice(started: Workload) -> None:
    Run.objects.update(ends_at=timezone.now() - timedelta(seconds=1))
    run = Run.objects.get()
    assert [run_time_reconcile.end_overdue(run), run_time_reconcile.end_overdue(run)] == [True, False]
    assert Delivery.objects.count() == 1


def test_an_extension_that_comes_first_wins(started: Workload, kube_worker: Kube, alice: User) -> None:
    """The worker has read the old end, and reads it again under the lock."""
    look(started, kube_worker)
    run = Run.objects.get()
    Run.objects.update(ends_at=timezone.now() - timedelta(seconds=1))
    run_time_actions.extend("team-a", "one", hours=1, by=Actor(user=alice, via="page"))
    assert run_time_reconcile.end_overdue(run) is False
    assert Run.objects.get().stop_requested_at is None


def test_a_persons_stop_stays_a_persons(started: Workload, kube_worker: Kube, alice: User) -> None:
    look(started, kube_worker)
    actions.stop("team-a", "one", by=Actor(user=alice, via="page"))
    Run.objects.update(ends_at=timezone.now() - timedelta(seconds=1))
    look(started, kube_worker)
    assert Run.objects.get().stop_reason == ""
    assert not Event.objects.filter(verb="run.time_over").exists()


# ---- extending the time limit ----------------------------------------------------------------------------------------


def test_extending_moves_the_end_and_writes_an_event(started: Workload, kube_worker: Kube, alice: User) -> None:
    look(started, kube_worker)
    before = Run.objects.get().ends_at
    assert before is not None
    run = run_time_actions.extend("team-a", "one", hours=3, by=Actor(user=alice, via="page"))
    assert run.ends_at == before + timedelta(hours=3)
    assert run.extended_minutes == 180
    event = Event.objects.get(verb="run.extended")
    assert (event.actor_id, event.after["hours"]) == (alice.pk, 3)
    assert Workload.objects.get().due_at is not None, "the worker looks at the new end"
    look(started, kube_worker)
    assert Run.objects.get().ends_at == before + timedelta(hours=3), "what was added is not forgotten"


def test_the_limit_counts_from_the_start_whatever_was_added_before(
    started: Workload, kube_worker: Kube, alice: User
) -> None:
    look(started, kube_worker)
    by = Actor(user=alice, via="page")
    run_time_actions.extend("team-a", "one", hours=3, by=by)
    with pytest.raises(
        Refused, match=r"2 h more requested\. Its time limit is 11 h from its start, .* allows 12 h\. Request 1 to 1 h"
    ):
        run_time_actions.extend("team-a", "one", hours=2, by=by)
    run_time_actions.extend("team-a", "one", hours=1, by=by)
    with pytest.raises(Refused, match="start it again afterwards"):
        run_time_actions.extend("team-a", "one", hours=1, by=by)
    assert Run.objects.get().extended_minutes == 240


def test_who_may_extend(
    started: Workload, kube_worker: Kube, bob: User, charlie: User, olga: User, alice: User
) -> None:
    look(started, kube_worker)
    with pytest.raises(Refused) as refused:
        run_time_actions.extend("team-a", "one", hours=1, by=Actor(user=bob, via="page"))
    assert refused.value.refusal.status == 403
    assert "may extend it" in refused.value.refusal.message
    with pytest.raises(Refused) as refused:
        run_time_actions.extend("team-a", "one", hours=1, by=Actor(user=charlie, via="page"))
    assert refused.value.refusal.status == 404
    reads = Actor(user=alice, via="token x", scopes=frozenset({str(Scope.READ)}))
    with pytest.raises(Refused):
        run_time_actions.extend("team-a", "one", hours=1, by=reads)
    run_time_actions.extend("team-a", "one", hours=1, by=Actor(user=olga, via="page"))


def test_what_never_ran_is_not_extended(granted: Tenant, notebook: LaunchSpec, by_alice: Actor) -> None:
    actions.declare("team-a", notebook, by=by_alice)
    with pytest.raises(Refused, match="This workload is not running"):
        run_time_actions.extend("team-a", "one", hours=1, by=by_alice)
