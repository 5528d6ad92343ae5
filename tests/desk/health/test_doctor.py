"""`manage.py doctor` and the contradictions that it and the health page report, each beside a case without fault."""

from __future__ import annotations

from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import AppliedObject, Cluster, MirrorEpoch, MirrorJob, MirrorLease, MirrorPod, MirrorWorkload
from desk.health.inconsistencies import inconsistencies
from portal.core.due import owner_label
from tenants.models import Namespace
from tests.support.rows import mirrored, running
from workloads.models import Run, Workload

pytestmark = pytest.mark.django_db

LONG_AGO = timedelta(minutes=5)


def doctor() -> tuple[int, str]:
    told = StringIO()
    try:
        call_command("doctor", stdout=told)
    except SystemExit as end:
        return int(end.code or 0), told.getvalue()
    return 0, told.getvalue()


@pytest.fixture
def one(namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    """A ready notebook whose Job and Kueue Workload are five minutes old: no contradiction."""
    found = running.workload(namespace_a, a100, by=alice)
    running.make_ready(found)
    past = timezone.now() - LONG_AGO
    MirrorJob.objects.update(created_at=past)
    queued(found, Admitted=past)
    AppliedObject.objects.create(
        cluster=namespace_a.cluster,
        owner=owner_label(found),
        kind="Job",
        namespace=namespace_a.name,
        name="one-1",
        uid=f"job-{found.pk}",
        result="applied",
        sent_at=past,
    )
    return found


def test_a_component_that_does_not_respond_is_the_first_finding(cluster: Cluster, one: Workload, olga: User) -> None:
    assert "respond" not in doctor()[1]
    now = timezone.now()
    MirrorLease.objects.create(
        cluster_id=cluster.pk, component="kueue", renewal="x", renewed_at=now - LONG_AGO, read_at=now
    )
    code, text = doctor()
    assert code == 1
    assert "Kueue does not respond" in text.splitlines()[0]
    assert "Check the pods of kueue-controller-manager" in text
    client = Client()
    client.force_login(olga)
    page = client.get("/health").text
    assert "Components that do not respond" in page
    assert "Kueue has not renewed its Lease since then. Nothing is admitted." in page
    MirrorLease.objects.update(renewed_at=now)
    assert "respond" not in doctor()[1]


def queued(of: Workload, **conditions: datetime) -> MirrorWorkload:
    record: dict[str, Any] = {
        "active": True,
        "conditions": [
            {"type": kind, "status": "True", "reason": "", "message": "", "since": since.isoformat()}
            for kind, since in conditions.items()
        ],
    }
    return MirrorWorkload.objects.create(
        cluster_id=of.namespace.cluster_id,
        namespace=of.namespace.name,
        name="job-one-1",
        uid=f"queued-{of.pk}",
        resource_version=1,
        created_at=timezone.now() - LONG_AGO,
        record=record,
        queue="gpu-portal",
        job_uid=f"job-{of.pk}",
    )


def codes(cluster: Cluster) -> list[str]:
    return [found.code for found in inconsistencies(cluster)]


def test_what_agrees_is_no_contradiction(one: Workload, cluster: Cluster) -> None:
    assert codes(cluster) == []


def test_a_run_whose_job_is_gone(one: Workload, cluster: Cluster) -> None:
    MirrorJob.objects.all().delete()
    MirrorWorkload.objects.all().delete()
    [found] = inconsistencies(cluster)
    assert (found.code, found.team, found.workload, found.run) == ("job_gone", "team-a", "one", 1)

    AppliedObject.objects.update(sent_at=timezone.now() - timedelta(seconds=30))
    assert codes(cluster) == [], "the mirror may not have seen it yet"


def test_a_run_that_a_worker_is_about_to_look_at(one: Workload, cluster: Cluster) -> None:
    MirrorJob.objects.all().delete()
    MirrorWorkload.objects.all().delete()
    now = timezone.now()
    for due_at, leased_until, expected in (
        (now - timedelta(seconds=5), None, []),
        (None, now + timedelta(seconds=60), []),
        (now - timedelta(minutes=5), None, ["job_gone"]),
    ):
        Workload.objects.update(due_at=due_at, leased_until=leased_until)
        assert codes(cluster) == expected


def test_a_job_whose_run_has_ended(one: Workload, cluster: Cluster) -> None:
    Run.objects.update(ended_at=timezone.now() - LONG_AGO, outcome="failed")
    assert codes(cluster) == ["job_left"]

    job = MirrorJob.objects.get()
    past = (timezone.now() - LONG_AGO).isoformat()
    job.record["conditions"] = [{"type": "Failed", "status": "True", "reason": "", "message": "", "since": past}]
    job.save()
    assert codes(cluster) == [], "an ended job is kept for its log"

    Run.objects.update(ended_at=timezone.now() - timedelta(hours=3))
    assert codes(cluster) == ["job_left"], "but not for ever"


def test_a_job_without_its_run(one: Workload, cluster: Cluster) -> None:
    """As after a restore from a backup that is older than the Job."""
    job = MirrorJob.objects.get()
    job.record["labels"]["gpu-portal/identity"] = "of-a-lost-run"
    job.save()
    assert [code for code in codes(cluster) if code != "job_gone"] == ["job_unrecorded"], "another run has that name"

    MirrorJob.objects.update(name="one-2")
    found = next(found for found in inconsistencies(cluster) if found.code == "job_unrecorded")
    assert (found.team, found.workload, found.run) == ("team-a", "one", 2)

    MirrorJob.objects.update(created_at=timezone.now())
    assert "job_unrecorded" not in codes(cluster), "only after a minute"


def test_an_admission_that_nobody_wrote_down(one: Workload, cluster: Cluster) -> None:
    Run.objects.update(admitted_at=None)
    assert codes(cluster) == ["admission_unrecorded"]

    MirrorWorkload.objects.all().delete()
    queued(one, Admitted=timezone.now() - timedelta(seconds=50))
    assert codes(cluster) == [], "only after a minute"


def test_a_suspended_job_that_kueue_has_not_noticed(one: Workload, cluster: Cluster) -> None:
    MirrorWorkload.objects.all().delete()
    MirrorPod.objects.all().delete()
    Run.objects.update(admitted_at=None, started_at=None, ready_at=None)
    assert codes(cluster) == [], "it is not suspended"

    job = MirrorJob.objects.get()
    job.record["suspend"] = True
    job.save()
    assert codes(cluster) == ["not_in_queue"]
    cluster.queue_system = Cluster.QueueSystem.NONE
    cluster.save()
    assert codes(cluster) == []


def test_an_admitted_job_without_a_pod(one: Workload, cluster: Cluster) -> None:
    MirrorPod.objects.all().delete()
    assert codes(cluster) == ["no_pod"]

    MirrorWorkload.objects.all().delete()
    queued(one, Admitted=timezone.now() - LONG_AGO, Evicted=timezone.now() - LONG_AGO)
    assert codes(cluster) == []


def test_one_query_whatever_the_number(one: Workload, cluster: Cluster) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert inconsistencies(cluster) == []
    assert len(queries) == 1


def test_page_and_doctor_tell_it_with_what_to_do(one: Workload, cluster: Cluster, olga: User) -> None:
    MirrorPod.objects.all().delete()
    [found] = inconsistencies(cluster)
    client = Client()
    client.force_login(olga)
    page = client.get("/health").text
    code, told = doctor()
    assert code == 1
    for text in (page, told):
        assert "1 inconsistent run" in text
        assert found.sentence in text
        assert found.do in text
    assert "run 1 of team-a/one" in told


def test_nothing_is_concluded_from_an_old_mirror(one: Workload, cluster: Cluster, olga: User) -> None:
    MirrorPod.objects.all().delete()
    MirrorEpoch.objects.update(beat_at=timezone.now() - LONG_AGO)
    code, told = doctor()
    assert code == 1
    assert "cluster updates interrupted" in told
    assert "The watcher is not running." in told
    assert "Not checked: the cluster data is outdated." in told
    assert "no_pod" not in told


def test_the_doctor_says_that_all_is_well(cluster: Cluster) -> None:
    mirrored.seen(cluster)
    code, told = doctor()
    assert (code, told.splitlines()[0]) == (
        0,
        "Healthy: no tasks past due for over 30 s, current cluster data, all objects in sync, no catalog problems.",
    )
    assert "→" not in told


def test_the_doctor_tells_each_sort_of_finding(one: Workload, namespace_a: Namespace, cluster: Cluster) -> None:
    Namespace.objects.filter(pk=namespace_a.pk).update(
        due_at=timezone.now() - LONG_AGO, error_code="refused", error_text="It did not work.", attempts=2
    )
    AppliedObject.objects.create(
        cluster=cluster,
        owner="tenants.namespace.1",
        kind="ResourceQuota",
        name="q",
        result="refused",
        text="Their words.",
    )
    MirrorJob.objects.update(owner="workloads.workload.987654")
    code, told = doctor()
    assert code == 1
    for text in (
        "overdue tenants.namespace: 1 task past due",
        "refused: It did not work. (2 attempts)",
        "refused ResourceQuota q:",
        "Their words.",
        "orphan Job",
    ):
        assert text in told
    assert told.count("  → ") == sum(bool(line) and line[0] != " " for line in told.splitlines()) - 2


def test_without_a_database_it_says_so(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    def away(*args: Any, **kwargs: Any) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr("cluster.reads.queries.current_cluster", away)
    code, told = doctor()
    assert (code, told.splitlines()[0]) == (2, "The database cannot be read (OperationalError).")


def test_without_a_cluster_it_names_the_first_step(db: None) -> None:
    code, told = doctor()
    assert code == 1
    assert "catalog settle" in told
