"""A preemption is recorded and announced once, however often and however late a worker looks."""

from __future__ import annotations

import html
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Delivery, Event, Notice, NoticeKind, User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import AppliedObject, Cluster, MirrorJob, MirrorWorkload
from portal.core.due import Deadline
from tenants.models import Membership, Namespace, Tenant
from tests.support.rows import make, mirrored, running
from tests.support.rows.interruptions import TAKEN, asked, condition, follow, holds, out, queue_says, seen
from tests.support.rows.waiting_runs import NEEDED, mirror_wait
from workloads.core import workload_sql
from workloads.models import Run, Workload
from workloads.runs import interruption_notices, requeue, start_notices
from workloads.runs.reconcile import reconcile
from workloads.status import outcome
from workloads.status import queries as status_queries
from workloads.status.workload_row import WorkloadRow

pytestmark = pytest.mark.django_db
MORE_URGENT = "Preempted to accommodate a workload (UID: 5, JobUID: 6) due to prioritization in the ClusterQueue"


@pytest.fixture
def house(team_a: Tenant, cluster: Cluster, a100: GpuClass) -> Tenant:
    """Four GPUs granted; four more may be borrowed."""
    mirrored.hardware_seen(cluster)
    GpuClass.objects.update(borrowing_limit=4)
    a100.refresh_from_db()
    make.grant(team_a, a100, units=4)
    return team_a


def back(run: Run, **more: Any) -> None:
    """Admitted again: the conditions report the preemption as previous."""
    past = {"reason": "QuotaReserved", "message": f"Previously: {TAKEN}"}
    true = [condition(name, "True") for name in ("QuotaReserved", "Admitted")]
    queue_says(run, *true, condition("Evicted", "False", **past), condition("Preempted", "False", **past), **more)


def shown(run: Run) -> WorkloadRow:
    return status_queries.workload_rows(workload_sql.with_related(Workload.objects.filter(pk=run.workload_id)))[0]


def told() -> list[dict[str, Any]]:
    return [{"verb": one.verb, **one.after} for one in Event.objects.order_by("pk")]


def test_one_event_and_one_mail_however_often_it_is_seen(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, bob: User
) -> None:
    run = asked(namespace_a, a100, alice)
    out(run)
    stale = Run.objects.get(pk=run.pk)

    assert follow(run)
    assert not follow(run), "it is the same one"
    assert not interruption_notices.record_preemptions(stale, seen(run)), "another worker told it meanwhile"

    (one,) = told()
    assert (one["verb"], one["run"], one["rule"]) == ("workload.interrupted", 1, "InCohortReclamation")
    assert (one["times"], one["earlier"]) == (1, 0)
    mail = Delivery.objects.get()
    assert mail.user == alice, "not everybody of the team"
    assert "its borrowed units were reclaimed by the lending team (Kueue's rule InCohortReclamation)" in mail.body
    assert "1st in your team's queue" in mail.body
    assert "/teams/team-a/workloads/train" in mail.body
    assert "JobUID" not in mail.body
    assert Run.objects.get().preemptions == 1

    out(run, preemptions=2)
    assert follow(run)
    assert [one["times"] for one in told()] == [1, 2]
    assert "This was the 2nd time." in Delivery.objects.order_by("-pk")[0].body


def test_it_is_told_when_the_queue_has_said_what_it_waits_for_or_after_a_while(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    run = asked(namespace_a, a100, alice)
    out(run, waits=TAKEN)
    assert not follow(run)
    assert (told(), Run.objects.get().preemptions) == ([], 0)
    out(run, waits=TAKEN, at=timezone.now() - timedelta(seconds=31))
    assert follow(run)
    assert "No start estimate: the queue has not reported yet" in Delivery.objects.get().body


def test_a_job_that_may_fail_by_it_is_told_of_when_it_has_not(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    """If it counted as a run's end that a next run follows, users would not be notified if no run follows."""
    run = asked(namespace_a, a100, alice)
    out(run)
    fail(run, "FailureTarget", suspend=False)
    assert not follow(run)
    assert (told(), Run.objects.get().preemptions) == ([], 0)
    out(run, at=timezone.now() - timedelta(seconds=31))
    assert follow(run)
    assert Delivery.objects.count() == 1


def test_the_worker_looks_again_when_an_interruption_has_settled(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, kube_worker: Kube
) -> None:
    run, at = asked(namespace_a, a100, alice), timezone.now().replace(microsecond=0)
    sent = {"owner": f"workloads.workload.{run.workload_id}", "namespace": namespace_a.name, "name": "train-1"}
    uid = f"job-{run.workload_id}"
    AppliedObject.objects.create(cluster_id=a100.cluster_id, kind="Job", uid=uid, result="applied", **sent)
    Workload.objects.update(observed_generation=1)

    def look() -> datetime | None:
        return reconcile(Workload.objects.get(), Deadline(), kube=kube_worker).clock

    assert look() is None
    out(run, waits=TAKEN, at=at)
    assert look() == at + timedelta(seconds=30)
    assert told() == []
    out(run, at=at)
    assert look() is None
    assert len(told()) == 1


def test_who_looks_too_late_tells_what_the_queue_has_counted(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    """The watcher was away: the run has been admitted again since."""
    run = asked(namespace_a, a100, alice)
    back(run, preemptions=2)
    assert follow(run)
    (one,) = told()
    assert (one["at"], one["rule"], one["times"]) == (None, "InCohortReclamation", 2)
    body = Delivery.objects.get().body
    assert body.startswith("train: Preempted: its borrowed units were reclaimed ")
    assert "It is already admitted again." in body


def test_what_a_person_stopped_is_counted_and_told_nobody(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    run = asked(namespace_a, a100, alice)
    assert not follow(run), "nothing happened to it"
    Run.objects.update(stop_requested_at=timezone.now())
    assert not follow(run)
    assert (told(), Delivery.objects.count()) == ([], 0)
    out(run)
    follow(run)
    assert [one["verb"] for one in told()] == ["workload.interrupted"]
    assert Delivery.objects.count() == 0


def test_more_urgent_work_of_the_own_team_is_another_rule(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    run = asked(namespace_a, a100, alice)
    out(run, text=MORE_URGENT, reason="InClusterQueue")
    assert follow(run)
    assert told()[0]["rule"] == "InClusterQueue"
    assert "a workload of your team with a higher priority needed its units" in Delivery.objects.get().body
    last = shown(run).interrupted
    assert last is not None
    assert last.who == "own_team"


# ---- Jobs that failed after an interruption --------------------------------------------------------------------------


def fail(run: Run, type: str = "Failed", **more: Any) -> None:
    job = MirrorJob.objects.get(uid=f"job-{run.workload_id}")
    job.record = {**job.record, "conditions": [condition(type, "True")], **more}
    job.save()


def end(run: Run) -> Run:
    """Ends the run as reconcile does for a Job that failed while it was suspended."""
    run = Run.objects.get(pk=run.pk)
    found = outcome.outcome_of(seen(run), kind="job")
    assert found is not None
    assert found.reason == outcome.TAKEN_BACK
    Run.objects.filter(pk=run.pk).update(ended_at=timezone.now(), outcome="stopped", reason=found.reason)
    return requeue.requeue(run, found, seen(run))


@pytest.mark.parametrize("failed", ["Failed", "FailureTarget"])
@pytest.mark.parametrize("is_told_before", [True, False])
def test_what_comes_back_as_another_run_is_told_once(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, is_told_before: bool, failed: str
) -> None:
    run = asked(namespace_a, a100, alice)
    out(run)
    if is_told_before:
        follow(run)
    fail(run, failed)
    follow(run)
    again = end(run)

    verbs = ["workload.interrupted", "workload.brought_back"] if is_told_before else ["workload.brought_back"]
    assert [one["verb"] for one in told()] == verbs
    last = told()[-1]
    assert (last["run"], last["rule"], last["times"]) == (2, "InCohortReclamation", 1)
    assert Delivery.objects.count() == 1
    assert "Kueue's rule InCohortReclamation" in Delivery.objects.get().body
    assert Run.objects.get(number=1).preemptions == 1
    found = shown(again).interrupted
    assert found is not None
    assert (found.rule, found.times, found.back_at) == ("InCohortReclamation", 1, None)


def test_a_second_time_counts_on(house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User) -> None:
    run = asked(namespace_a, a100, alice)
    out(run)
    fail(run)
    again = end(run)
    MirrorJob.objects.all().delete()
    MirrorWorkload.objects.all().delete()
    mirror_wait(again.workload, NEEDED)
    MirrorJob.objects.update(run="train-2")
    out(again)
    assert follow(again)
    assert [(one["run"], one["times"]) for one in told()] == [(2, 1), (2, 2)]
    assert "This was the 2nd time." in Delivery.objects.order_by("-pk")[0].body


# ---- running again ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "mails"), [("notebook", 2), ("job", 1)])
def test_that_it_is_at_work_again_is_an_event_and_a_mail_where_somebody_is_waited_for(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, kind: str, mails: int
) -> None:
    run = asked(namespace_a, a100, alice, kind=kind)
    out(run, at=timezone.now() - timedelta(minutes=1))
    follow(run)
    assert not follow(run), "it is not yet"
    MirrorJob.objects.all().delete()
    running.make_ready(run.workload)
    back(run)

    assert follow(run)
    assert not follow(run), "once"

    assert [one["verb"] for one in told()] == ["workload.interrupted", "workload.resumed"]
    assert Delivery.objects.count() == mails
    last = shown(run).interrupted
    assert last is not None
    assert (last.rule, last.times) == ("InCohortReclamation", 1)
    assert last.back_at is not None
    out(run, preemptions=2)
    follow(run)
    assert [one["times"] for one in told()] == [1, 1, 2]


def test_the_pod_of_before_is_no_sign_of_work(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    """The watch of pods may lag behind that of Workloads."""
    run = asked(namespace_a, a100, alice)
    MirrorJob.objects.all().delete()
    out(run, at=timezone.now() + timedelta(seconds=1))
    follow(run)
    running.make_ready(run.workload)
    back(run)
    follow(run)
    assert "workload.resumed" not in [one["verb"] for one in told()]


# ---- interruptions on pages ------------------------------------------------------------------------------------------


def text_of(client: Client, path: str, data: dict[str, str] | None = None) -> str:
    page: Any = client.post(path, data) if data else client.get(path)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page.content.decode())))


def test_what_others_of_the_team_hold_decides_who_borrows(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, client: Client
) -> None:
    """The run's own page counts other runs as the list does; work that was not started in the portal counts too."""
    first = asked(namespace_a, a100, alice, "first", units=3)
    holds(first, a100, 3)
    second = asked(namespace_a, a100, alice, "second", units=2)
    found = shown(second).exposure
    assert found is not None
    assert (found.holds, found.place.borrowed) == (False, 1)
    assert "1 of its 2 GPUs would be borrowed" in found.sentence
    holds(second, a100, 2)
    found = shown(second).exposure
    assert found is not None
    assert (found.holds, found.place.borrowed) == (True, 1)
    of_first = shown(first).exposure
    assert of_first is not None
    assert not of_first.is_borrowed
    client.force_login(alice)
    assert text_of(client, "/teams/team-a/workloads").count("on borrowed units, preemptible") == 1

    # The Workload of a Job that was created by hand in the namespace and admitted before both.
    MirrorWorkload.objects.filter(job_uid=f"job-{first.workload_id}").update(job_uid="by-hand")
    found = shown(second).exposure
    assert found is not None
    assert found.place.borrowed == 1


def test_nothing_is_said_while_nobody_knows(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, client: Client
) -> None:
    run = running.workload(namespace_a, a100, name="train", by=alice, kind="job").runs.get()
    assert shown(run).exposure is None
    client.force_login(alice)
    body = client.get("/api/v1/workloads/train?team=team-a").json()["interruption"]
    assert (body["standing"], body["holds_units"], body["borrowed_units"], body["last"]) == (None, None, None, None)
    assert "Interruptions:" not in text_of(client, "/teams/team-a/workloads/train")
    Run.objects.update(ended_at=timezone.now(), outcome="succeeded")
    assert client.get("/api/v1/workloads/train?team=team-a").json()["interruption"] is None


def test_it_costs_one_query_and_one_more_where_something_was_interrupted(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    def cost() -> int:
        with CaptureQueriesContext(
            connection,
        ) as found:
            status_queries.workload_rows(workload_sql.with_related(Workload.objects.all()))
        said = [one["sql"] for one in found if "tenants_grant" in one["sql"] or "accounts_event" in one["sql"]]
        return len(said)

    runs = [asked(namespace_a, a100, alice, f"train-{number}") for number in range(3)]
    for run in runs:
        holds(run, a100, 1)
    assert cost() == 1
    back(runs[0])
    follow(runs[0])
    assert cost() == 2


def test_the_launch_form_says_it_before_anything_is_made(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, client: Client
) -> None:
    client.force_login(alice)
    typed = {"look": "units", "kind": "job", "name": "train", "gpu_class": a100.slug, "units": "3", "workers": "2"}
    page = text_of(client, "/teams/team-a/launch", typed)
    assert "Interruptions: 2 of its 6 GPUs would be borrowed: the lending team reclaims them" in page
    assert "It restarts automatically from the beginning: no checkpointing is declared." in page
    page = text_of(client, "/teams/team-a/launch", {**typed, "units": "2", "checkpoints": "on"})
    assert "Interruptions: It would use your team's quota" in page
    assert "continues from its last checkpoint" in page


def test_who_left_the_team_is_not_told(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, bob: User
) -> None:
    run = asked(namespace_a, a100, bob)
    Membership.objects.filter(user=bob).delete()
    out(run)
    follow(run)
    assert [mail.user for mail in Delivery.objects.all()] == [alice], "its managers are"


# ---- notice of a start ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("waited", "told_of"), [(timedelta(minutes=3), 1), (timedelta(minutes=1), 0)])
def test_who_waited_in_the_queue_is_told_of_the_start_once(
    house: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, waited: timedelta, told_of: int
) -> None:
    run = asked(namespace_a, a100, alice)
    now = timezone.now()
    run.requested_at, run.admitted_at = now - waited, now

    start_notices.tell_start(run, now)

    notices = Notice.objects.filter(kind=NoticeKind.STARTED)
    assert [(one.user, one.link) for one in notices] == [(alice, "/teams/team-a/workloads/train")] * told_of
    assert Event.objects.filter(verb="run.started").count() == told_of
    assert not Delivery.objects.exists(), "by default it is no email"
