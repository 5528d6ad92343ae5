"""What is stored when a run ends: a log, or why there is none."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.client.errors import ClusterRefused, ClusterUnavailable, NotFound
from cluster.client.log_end import LogTooSlow
from cluster.reads import queries as read_queries
from portal.core.due import owner_label
from portal.core.errors import Refused
from tenants.models import Namespace
from tests.support.rows import running
from tests.workloads.logs.node import Node
from workloads.core.observation import Observation
from workloads.logs import capture, retention
from workloads.logs.models import RunLog
from workloads.logs.queries import KeptLog, NoLog, kept_log
from workloads.models import Run, Workload

pytestmark = pytest.mark.django_db
SECRET = "q7G-not-in-any-log-9k"


@pytest.fixture
def one(namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    found = running.workload(namespace_a, a100, by=alice)
    running.make_ready(found)
    return found


def keep(one: Workload, node: Node) -> None:
    pods = read_queries.pods(one.namespace.cluster_id, namespace=one.namespace.name, owner=owner_label(one))
    run = Run.objects.select_related("workload__namespace").get(workload=one)
    capture.keep_logs(run, Observation(pods=tuple(pods)), (SECRET,), kube=node)  # type: ignore[arg-type]


def read(one: Workload, who: User, **what: Any) -> KeptLog | NoLog:
    return kept_log(Actor(user=who, via="stream"), "team-a", one.name, **what)


def over() -> None:
    Run.objects.update(ended_at=timezone.now(), outcome="failed")


def test_it_is_kept_without_secrets_for_the_days_of_the_class(one: Workload, a100: GpuClass, bob: User) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(log_retention_days=3)
    keep(one, Node(f"epoch 1\nlogin {SECRET}\n".encode()))
    over()
    found = read(one, bob)
    assert isinstance(found, KeptLog)
    assert (found.run, found.worker, found.text, found.is_truncated) == (1, 0, "epoch 1\nlogin ***\n", False)
    assert timedelta(days=3) - timedelta(minutes=1) < found.expires_at - timezone.now() <= timedelta(days=3)
    assert read(one, bob, number=1) == read(one, bob, worker=0) == found


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (NotFound(404, "NotFound", "no pod"), "no_pod"),
        (ClusterRefused(403, "Forbidden", "no"), "forbidden"),
        (ClusterUnavailable("dial tcp: i/o timeout"), "unreachable"),
        (LogTooSlow("slow"), "too_slow"),
        (b"unable to retrieve container logs for containerd://12", "removed"),
    ],
)
def test_why_it_could_not_be_read_is_kept_instead(
    one: Workload, alice: User, error: bytes | Exception, problem: str
) -> None:
    keep(one, Node(error))
    over()
    row = RunLog.objects.get()
    assert (row.problem, row.text) == (problem, "")
    found = read(one, alice)
    assert isinstance(found, NoLog)
    assert found.is_final
    assert found.sentence.startswith("There is no log of run 1: when it ended, ")


def test_a_repetition_replaces_a_log_by_a_later_one_and_never_by_a_failure(one: Workload) -> None:
    keep(one, Node(ClusterUnavailable("later")))
    for node, text in ((Node(b"a\n"), "a\n"), (Node(b"a\nb\n"), "a\nb\n"), (Node(NotFound(404, "", "")), "a\nb\n")):
        keep(one, node)
        row = RunLog.objects.get()
        assert (row.text, row.problem) == (text, "")


def test_of_an_earlier_attempt_no_other_workers_stay(one: Workload) -> None:
    RunLog.objects.create(run=one.runs.get(), worker=7, rank=0, text="before", expires_at=timezone.now())
    keep(one, Node(b"a\n"))
    assert RunLog.objects.get().worker == 0


def test_a_class_that_keeps_none_reads_none(one: Workload, a100: GpuClass, alice: User) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(log_retention_days=0)
    node = Node(b"a\n")
    keep(one, node)
    assert (node.asked, RunLog.objects.count()) == (0, 0)
    over()
    assert read(one, alice) == NoLog("There is no log of run 1: its class keeps no logs.", is_final=True)


def test_after_the_time_for_one_run_the_others_are_not_asked(one: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "WITHIN_S", 0.0)
    node = Node(b"a\n")
    keep(one, node)
    assert (node.asked, RunLog.objects.get().problem) == (0, "too_slow")


def test_a_run_that_goes_on_may_still_write_one(one: Workload, alice: User) -> None:
    found = read(one, alice)
    assert isinstance(found, NoLog)
    assert not found.is_final
    with pytest.raises(Refused):
        read(one, alice, number=2)
    with pytest.raises(Refused):
        read(one, alice, number=10**12)


def test_a_stranger_finds_nothing(one: Workload, charlie: User) -> None:
    keep(one, Node(b"a\n"))
    with pytest.raises(Refused) as refused:
        read(one, charlie)
    assert refused.value.refusal.status == 404


def test_expired_logs_are_deleted_and_said_to_be(one: Workload, alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    keep(one, Node(b"a\n"))
    run = one.runs.get()
    now = timezone.now()
    others = [RunLog(run=run, worker=number, rank=number, text="b", expires_at=now) for number in range(1, 6)]
    RunLog.objects.bulk_create(others)
    retention.delete_expired_logs()
    assert RunLog.objects.get().text == "a\n"
    Run.objects.update(ended_at=now - timedelta(days=15), outcome="failed", requested_at=now - timedelta(days=16))
    RunLog.objects.update(expires_at=now - timedelta(days=1))
    retention.delete_expired_logs()
    found = read(one, alice)
    assert isinstance(found, NoLog)
    assert found.sentence == "There is no log of run 1: logs of its class are kept for 14 days."


def test_the_page_links_the_logs_of_earlier_runs(one: Workload, bob: User, client: Client) -> None:
    keep(one, Node(b"a\n"))
    over()
    for number in (2, 3):
        again = {"spec": {**one.runs.get(number=1).spec, "number": number}, "requested_by": bob}
        Run.objects.create(workload=one, number=number, ended_at=timezone.now(), outcome="stopped", **again)
    missing = RunLog(run=one.runs.get(number=2), worker=0, rank=0, problem="unreachable", expires_at=timezone.now())
    missing.save()
    client.force_login(bob)
    with CaptureQueriesContext(connection) as before:
        page = client.get("/teams/team-a/workloads/one").text
    assert 'href="/live/logs/team-a/one?run=1&amp;follow=0"' in page
    assert "?run=2" not in page
    Run.objects.create(workload=one, number=4, ended_at=timezone.now(), outcome="stopped", **again)
    RunLog.objects.create(run=one.runs.get(number=3), worker=0, rank=0, text="b", expires_at=timezone.now())
    with CaptureQueriesContext(connection) as after:
        assert "?run=3" in client.get("/teams/team-a/workloads/one").text
    assert len(after) == len(before)
