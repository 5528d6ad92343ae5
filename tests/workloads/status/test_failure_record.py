"""A failed run is explained a day later, without its pod, as it was at its end; without secrets."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import AppliedObject, MirrorJob, MirrorPod
from portal.core.due import Deadline, owner_label
from tenants.models import Namespace, Tenant
from tests.support.rows import running
from tests.support.rows.running import container
from tests.workloads.cases.problems import ENDINGS, NOW, WISH, Problem
from workloads.core.observation import Observation
from workloads.credentials import sealing
from workloads.credentials.secrets.models import TeamSecret
from workloads.models import Run, Workload
from workloads.runs.reconcile import reconcile
from workloads.status import failure_record, outcome, progress
from workloads.status.explain.endings.termination import termination_explanation
from workloads.status.explain.types import Explanation
from workloads.status.failure_record import CompletedStep, FailureRecord
from workloads.status.phase import status_of

VALUE = "hunter2-is-long"
SAID = f"Traceback\nlogin with password=swordfish failed\nheader {VALUE}\nValueError: 7 columns expected, 5 found"
TOLD = Explanation("crashed", "It ended with exit code 3.", "Its log.", SAID, "the kubelet", facts={"exit_code": 3})


# ---- record values ---------------------------------------------------------------------------------------------------


def test_what_is_kept_reads_as_it_was_written_without_secrets() -> None:
    at = timezone.now()
    record = failure_record.failure_record_json(
        FailureRecord(TOLD, (CompletedStep("Node assigned", at, "a100-1"),)), secrets=(VALUE,)
    )
    found = failure_record.failure_record_from_json(record)
    assert found is not None
    assert found.reached == (CompletedStep("Node assigned", at, "a100-1"),)
    assert found.told == replace(TOLD, is_final=True, raw=found.told.raw)
    assert found.told.raw.endswith("header ***\nValueError: 7 columns expected, 5 found")
    assert "swordfish" not in str(record)
    assert VALUE not in str(record)


@pytest.mark.parametrize(
    ("length", "is_cut"), [(failure_record.RAW_LIMIT, False), (failure_record.RAW_LIMIT + 1, True)]
)
def test_of_a_long_text_the_end_is_kept(length: int, is_cut: bool) -> None:
    raw = "first " + "x" * (length - 11) + " last"
    found = failure_record.failure_record_json(FailureRecord(replace(TOLD, raw=raw)))["raw"]
    assert len(found) == failure_record.RAW_LIMIT
    assert (found.startswith(failure_record.CUT), found.endswith(" last")) == (is_cut, True)


def test_what_did_not_fail_keeps_nothing() -> None:
    assert failure_record.failure_record_from_json({}) is None


@pytest.mark.parametrize("problem", [one for one in ENDINGS if one.phase == "failed"], ids=lambda one: one.name)
def test_the_steps_of_a_failed_run_stay_when_its_pod_is_gone(problem: Problem) -> None:
    """Each step stays, with the one that stood still and the text behind it."""
    wish = replace(WISH, has_repository="clone" in str(problem.facts))
    pod = problem.seen.pod
    assert pod is not None
    told = termination_explanation(pod)
    over = replace(
        wish, ended_at=NOW, outcome="failed", reason=told.reason, message=told.sentence,
        exit_code=outcome.pod_termination(pod).exit_code,
        kept=FailureRecord(told, progress.completed_steps(wish, problem.seen)),
    )  # fmt: skip
    gone, there = Observation(), problem.seen
    alive = progress.progress_steps(wish, there, status_of(wish, there, now=NOW))
    after = progress.progress_steps(over, gone, status_of(over, gone, now=NOW))
    assert after == progress.progress_steps(over, there, status_of(over, there, now=NOW))
    assert [(step.title, step.state, step.problem, step.raw) for step in after] == [
        (step.title, step.state, step.problem, step.raw) for step in alive
    ]
    assert status_of(over, gone, now=NOW).facts == problem.facts


# ---- stored records, page and API ------------------------------------------------------------------------------------


@pytest.fixture
def one(granted: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    return running.workload(namespace_a, a100, by=alice)


def failed(one: Workload, *, secrets: tuple[str, ...] = ()) -> None:
    """Its container exited with 3, and its Job reports the failure."""
    pod = running.make_ready(one)
    run = Run.objects.get(workload=one)
    Run.objects.filter(pk=run.pk).update(spec={**run.spec, "secrets": list(secrets)})
    now = timezone.now().isoformat()
    over = container("notebook", "terminated", reason="Error", exit_code=3, message=SAID, ended_at=now, since=now)
    MirrorPod.objects.filter(pk=pod.pk).update(phase="Failed", record={**pod.record, "containers": [over]})
    job = MirrorJob.objects.get(owner=owner_label(one))
    condition = {"type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": "", "since": now}
    MirrorJob.objects.filter(pk=job.pk).update(record={**job.record, "conditions": [condition]})
    sent = {"cluster_id": one.namespace.cluster_id, "owner": owner_label(one), "namespace": one.namespace.name}
    for kind in ("Job", "Secret"):
        AppliedObject.objects.create(kind=kind, name="one-1", uid=job.uid, result="applied", **sent)


def look(one: Workload, kube: Kube) -> None:
    one.observed_generation = 1
    reconcile(one, Deadline(), kube=kube)


def told(client: Client) -> tuple[str, dict[str, Any]]:
    page = client.get("/teams/team-a/workloads/one").content.decode()
    body = client.get("/api/v1/workloads/one?team=team-a").json()
    return page, body


@pytest.mark.django_db
def test_page_and_api_tell_the_day_after_what_they_told_at_the_end(
    one: Workload, alice: User, client: Client, kube_worker: Kube
) -> None:
    failed(one)
    look(one, kube_worker)
    client.force_login(alice)
    page, body = told(client)
    (stuck,) = [step for step in body["steps"] if step["state"] == "stuck"]
    assert body["status"]["message"] == stuck["problem"] == "It ended with exit code 3."
    assert stuck["raw"].endswith("ValueError: 7 columns expected, 5 found")
    assert "7 columns expected, 5 found" in page
    assert [step["note"] for step in body["steps"] if step["title"] == "Node assigned"] == ["a100-1"]

    Run.objects.update(ended_at=timezone.now() - timedelta(days=1))
    MirrorPod.objects.all().delete()
    MirrorJob.objects.all().delete()
    running.known(one.namespace.cluster_id)
    page_after, body_after = told(client)

    assert [step | {"at": ""} for step in body_after["steps"]] == [step | {"at": ""} for step in body["steps"]]
    # The log is gone with the pod; the stored part of it is not.
    assert (body["status"]["actions"], body_after["status"]["actions"]) == (
        ["start", "log", "change", "delete"], ["start", "change", "delete"],
    )  # fmt: skip
    same = ("phase", "reason", "message", "facts")
    assert [body_after["status"][name] for name in same] == [body["status"][name] for name in same]
    assert "7 columns expected, 5 found" in page_after


@pytest.mark.django_db
def test_secrets_of_the_run_and_what_looks_like_one_are_not_kept(
    one: Workload, alice: User, client: Client, kube_worker: Kube
) -> None:
    sealed = sealing.seal(VALUE)
    TeamSecret.objects.create(namespace=one.namespace, name="MINE", sealed=sealed, created_by=alice)
    failed(one, secrets=("MINE",))
    look(one, kube_worker)
    run = Run.objects.get()
    assert "header ***" in run.kept["raw"]
    client.force_login(alice)
    page, body = told(client)
    for text in (page, str(body), str(run.kept)):
        assert VALUE not in text
        assert "swordfish" not in text
