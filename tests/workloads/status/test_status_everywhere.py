"""One Status: page, stream fragments, list and API show the same sentence, steps and detail text."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.mirror.records.nodes import image_key
from cluster.models import AppliedObject, MirrorNode, MirrorPod
from portal.core.due import Deadline, owner_label
from tenants.models import Namespace, Tenant
from tests.support.rows import mirrored, running
from tests.support.rows.running import container
from workloads.core import workload_sql
from workloads.gateway import queries as gateway_queries
from workloads.models import Run, Workload
from workloads.pages import shown
from workloads.runs.reconcile import reconcile
from workloads.status import queries, workload_row

pytestmark = pytest.mark.django_db

SAID = "fatal: repository 'https://git.example.org/course.git/' not found"
SENTENCE = "The repository https://git.example.org/course.git does not exist."


@pytest.fixture
def one(granted: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    return running.workload(namespace_a, a100, by=alice)


def put(one: Workload, *, phase: str, main: dict[str, Any], before: list[dict[str, Any]], ready: bool = False) -> None:
    """Its pod is on a node, with its containers in the given state."""
    pod: MirrorPod = running.make_ready(one)
    Run.objects.filter(workload=one).update(started_at=None, ready_at=None)
    conditions = [c for c in pod.record["conditions"] if ready or c["type"] != "Ready"]
    record = {**pod.record, "containers": [main], "init_containers": before, "conditions": conditions}
    MirrorPod.objects.filter(name=pod.name).update(record=record, phase=phase)


def row() -> workload_row.WorkloadRow:
    return queries.workload_rows(workload_sql.with_related(Workload.objects.all()))[0]


def test_a_clone_that_failed_is_told_alike_everywhere(one: Workload, alice: User, client: Client) -> None:
    options = {**Run.objects.get().spec, "repository": "https://git.example.org/course.git", "clone_into": "course"}
    Run.objects.update(spec=options)
    failed = container("clone", "terminated", reason="Error", exit_code=128, message=SAID)
    put(one, phase="Failed", main=container("notebook", "waiting", reason="PodInitializing"), before=[failed])
    client.force_login(alice)

    page = client.get("/teams/team-a/workloads/one").content.decode()
    body = client.get("/api/v1/workloads/one?team=team-a").json()
    listed = client.get("/teams/team-a/workloads").content.decode()
    state = shown.workload_state(row())

    assert SENTENCE in page
    assert SENTENCE in listed
    assert state.message == SENTENCE
    assert (body["status"]["phase"], body["status"]["reason"]) == ("failed", "repository_not_found")
    assert body["status"]["message"] == SENTENCE
    assert body["status"]["facts"] == {"exit_code": 128, "container": "clone"}
    (stuck,) = [step for step in body["steps"] if step["state"] == "stuck"]
    assert (stuck["title"], stuck["problem"]) == ("Repository", SENTENCE)
    assert stuck["raw"].endswith(SAID)
    assert [step["title"] for step in body["steps"]] == [step.title for step in state.steps]
    assert page.count("fatal: repository &#x27;https://git.example.org/course.git/&#x27; not found") == 1
    assert "<details>" in page


@pytest.mark.parametrize(
    ("clone", "main", "expected"),
    [
        (container("clone", "running"), container("notebook", "waiting"), "clone"),
        (container("clone", "terminated", exit_code=128), container("notebook", "waiting"), "clone"),
        (container("clone", "terminated", exit_code=0), container("notebook", "running"), "notebook"),
        (container("clone", "terminated", exit_code=0), container("notebook", "waiting"), ""),
        (container("clone", "waiting"), container("notebook", "waiting"), ""),
    ],
)
def test_the_log_is_that_of_the_clone_while_it_runs_and_when_it_failed(
    one: Workload, by_alice: Actor, clone: dict[str, Any], main: dict[str, Any], expected: str
) -> None:
    put(one, phase="Pending", main=main, before=[clone])
    _namespace, source = gateway_queries.log_source(by_alice, "team-a", "one")
    assert (source.container if source else "") == expected


def test_nodes_tell_which_images_they_have(one: Workload, django_assert_num_queries: Any) -> None:
    """Two of the four A100 nodes of the simulated hardware, and a cordoned one; the run's own node is ready."""
    mirrored.hardware_seen(one.namespace.cluster)
    put(one, phase="Pending", main=container("notebook", "waiting", reason="ContainerCreating"), before=[])
    key = image_key(Run.objects.get().spec["image"])
    for name in ("a100-1", "a100-2", "a100-3", "h100"):
        node = MirrorNode.objects.get(name=name)
        node.record["images"] = {key: 4300}
        node.schedulable = name != "a100-3"
        node.save()
    # Workload, last run, what was sent; mirror: age, jobs, queue, pods, warnings; troubled nodes, images; own units.
    with django_assert_num_queries(11):
        note = next(step.note for step in row().steps if step.title == "Image")
    assert note.endswith("4.2 GiB, already on a100-1.")
    MirrorPod.objects.update(node="a100-4")
    note = next(step.note for step in row().steps if step.title == "Image")
    assert note.endswith("4.2 GiB, already on 2 nodes.")


def test_a_node_that_is_not_heard_of_makes_what_runs_there_unknown(one: Workload) -> None:
    mirrored.hardware_seen(one.namespace.cluster)
    running.make_ready(one)
    assert row().status.reason == "ready"
    node = MirrorNode.objects.get(name="a100-1")
    node.ready = False
    node.record |= {"ready_reason": "NodeStatusUnknown", "ready_message": "Kubelet stopped posting node status."}
    node.save()
    assert (str(row().status.phase), row().status.reason) == ("unknown", "node_lost")
    assert row().steps[-1].raw == "NodeStatusUnknown: Kubelet stopped posting node status."


@pytest.mark.parametrize(("outcome", "stays"), [("failed", True), ("stopped", False)])
def test_a_notebook_that_failed_keeps_its_job_for_the_log(
    one: Workload, kube_worker: Kube, outcome: str, stays: bool
) -> None:
    Run.objects.update(ended_at=timezone.now(), outcome=outcome)
    sent = {"cluster_id": one.namespace.cluster_id, "owner": owner_label(one), "uid": "gone"}
    AppliedObject.objects.create(kind="Job", namespace=one.namespace.name, name="one-1", **sent)
    one.observed_generation = 1
    look = reconcile(one, Deadline(), kube=kube_worker)
    assert AppliedObject.objects.filter(name="one-1").exists() is stays
    assert (look.clock is not None) is stays
