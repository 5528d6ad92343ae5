"""What kubelets, container runtimes and programs say, on the real control plane: through API server, Job controller,
mirror and the record of a run, each is told as it was written, and the first step has the written result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass, Image
from cluster.client.kube import Kube
from cluster.manifests.run import WORKLOAD_LABEL
from cluster.models import Cluster
from desk.home.queries import home_state
from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.controlplane import hardware
from devcluster.kubelet.scripted import ScriptedKubelet
from tenants.class_access.image_prefixes import actions as image_prefixes
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.workloads.cases.live import RUNNING, on_nodes, told
from tests.workloads.cases.problems import PROBLEMS, ended, pulled_in_vain
from tests.workloads.cases.staged import until_as_written
from tests.workloads.cases.steps_followed import by_hand, follow
from tests.workloads.situations.kubelets.replay import pending, replay, runs_latest
from tests.workloads.situations.kubelets.written import ANEW, CHANGE, LOG, OF_TYPED_IMAGES, SAYINGS, VOLUMES
from tests.workloads.situations.test_problems_live import COURSE, cpu
from tests.workloads.status.explain.messages import MESSAGES
from workloads.launch import actions
from workloads.launch.options import NO_OPTIONS, Options
from workloads.launch.types import LaunchSpec
from workloads.models import Run
from workloads.status import silence

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]

# Fixtures of other modules, by name.
__all__ = ["by_hand", "cpu"]

SAID = SAYINGS.keys() - {"kubelet_silent"}
# Texts that nothing in the portal knows, as they may come from a later version.
UNKNOWN = {
    "image_not_pulled": pulled_in_vain("the moon is full"),
}
# Told of an image that a person typed.
DENIED = {"no_credentials": pulled_in_vain("pull access denied, repository may require authorization")}
# A class without GPUs gives the pod none.
WITHOUT_GPU = {"gpu_not_requested": ended(1, message="RuntimeError: No CUDA GPUs are available")}
# Each with the first case of the tables that has it. Without pods that are replaced at once: they are seen by chance.
OF_TABLES = [(one.reason, one.seen) for one in (*PROBLEMS, *MESSAGES) if one.seen.pods and one.seen.pods[-1].node]
CASES = {reason: seen for reason, seen in reversed(OF_TABLES) if reason in SAID} | UNKNOWN | DENIED | WITHOUT_GPU
CARDS = "nvidia.com/gpu"

# What a person types into the form of the first step.
PREFIX = "registry.exmaple.org/vision/"
IMAGE = {"image": "newer", "image_reference": ""}
COMMAND = {"command": "python other.py"}
REPOSITORY = {"repository": "https://git.example.org/public.git"}
TYPED = {
    "image_not_pulled": IMAGE, "bad_image_name": IMAGE, "image_wrong_platform": IMAGE, "image_wrong_format": IMAGE,
    "image_runs_as_root": IMAGE, "registry_unknown": IMAGE, "image_needs_newer_driver": IMAGE,
    "image_not_allowed": IMAGE, "no_credentials": IMAGE, "image_wrong_gpu": IMAGE, "working_directory": IMAGE,
    "no_git": IMAGE,
    "gpu_not_requested": {},
    "bus_error": {"shared_memory_gib": "2"},
    "command_not_executable": COMMAND, "command_not_found": COMMAND, "out_of_gpu_memory": COMMAND,
    "clone_out_of_memory": {"units": "2"},
    "repository_not_found": REPOSITORY, "repository_private": REPOSITORY, "repository_unreachable": REPOSITORY,
    "reference_not_found": {"reference": "main"},
}  # fmt: skip


@pytest.fixture
def said(admin: Api, cluster: Cluster, unique: str) -> Iterator[GpuClass]:
    """A node with enough GPUs for all cases, which no other pods request."""
    name, product = f"said-{unique}", f"SAID-{unique}"
    taint = {"key": CARDS, "value": "present", "effect": "NoSchedule"}
    labels = {CARDS: {"product": product, "present": True}}
    hardware.add(admin, hardware.node(name, devices={CARDS: 60}, labels=labels, taints=[taint]))
    yield make.gpu_class(
        cluster, slug=f"said-{unique}", name="Said", node_labels={f"{CARDS}.product": product}, cpu_per_unit=1,
        memory_gib_per_unit=4,
    )  # fmt: skip
    admin.delete("v1/nodes", name)


def test_each_of_them_has_a_case_and_a_step_to_follow() -> None:
    assert CASES.keys() == SAID
    assert TYPED.keys() == {reason for reason, one in SAYINGS.items() if one.step == CHANGE}


def test_what_kubelets_say(
    said: GpuClass, cpu: GpuClass, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None,
    job: LaunchSpec, by_alice: Actor, by_hand: Client, olga: User, worker: Worker, admin: Api,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """One kubelet says nothing at all. Beside them, one run works, and something in the namespace is not ours."""
    make.grant(team_a, said, units=60)
    make.grant(team_a, cpu, units=1)
    image_prefixes.allow_prefix("team-a", PREFIX, by=Actor(olga, via="page"))
    provision(namespace_a, kube_worker)
    space, kubelet = namespace_a.name, ScriptedKubelet(admin)
    Image.objects.create(name="newer", reference="docker.io/library/python:3.15-slim", kind="job")
    admin.create(theirs(space))
    monkeypatch.setattr(silence, "FIRST_REPORT", timedelta(hours=1))

    def pod_of(name: str) -> Json:
        return kubelet.bound(space, labels=f"{WORKLOAD_LABEL}={name}")

    def beside() -> tuple[Json, Json]:
        return pod_of("sound"), admin.get("v1/configmaps", "theirs", namespace=space)

    def used() -> int | None:
        return next(one.used for one in home_state(namespace_a).holdings if one.slug == said.slug)

    with kubelet.claim(space):
        for name in ("sound", "kubelet-silent"):
            actions.launch("team-a", replace(job, name=name, gpu_class=said.slug), by=by_alice)
        for reason, seen in CASES.items():
            options = Options(repository=COURSE) if seen.pods[-1].init_containers else NO_OPTIONS
            options = replace(options, reference="v9") if reason == "reference_not_found" else options
            volume = VOLUMES.get(reason, "")
            slug = cpu.slug if reason in WITHOUT_GPU else said.slug
            image = f"{PREFIX}train:7" if reason in OF_TYPED_IMAGES else job.image
            wanted = LaunchSpec(named(reason), "job", slug, 1, image, job.command, volume=volume, options=options)
            actions.launch("team-a", wanted, by=by_alice)
        everything = {"sound", *map(named, SAYINGS)}
        worker(lambda: everything <= set(on_nodes(admin, space)), within_s=120)
        kubelet.running(pod_of("sound"))
        for reason, seen in CASES.items():
            replay(kubelet, pod_of(named(reason)), seen)
        worker(lambda: told()["sound"] == RUNNING)
        before = beside()
        first = until_as_written(worker, by_alice, {named(reason): SAYINGS[reason] for reason in CASES})
        assert told()["kubelet-silent"] == ("preparing", "preparing")
        monkeypatch.setattr(silence, "FIRST_REPORT", timedelta(seconds=1))
        until_as_written(worker, by_alice, {"kubelet-silent": SAYINGS["kubelet_silent"]})
        monkeypatch.setattr(silence, "FIRST_REPORT", timedelta(hours=1))
        # What waits on its node uses its units; what has failed does not.
        held = 1 + sum(one.phase != "failed" for one in SAYINGS.values())
        worker(lambda: used() == held)
        assert (told()["sound"], beside()) == (RUNNING, before)

        # People change what was wrong, and operators mend nodes and storage.
        for reason, typed in TYPED.items():
            typed = {"gpu_class": said.slug} if reason in WITHOUT_GPU else typed
            follow(by_hand, first[named(reason)].steps[0].href, **typed)
        for reason, one in SAYINGS.items():
            if one.then == ANEW:
                actions.start("team-a", named(reason), by=by_alice)
        logs = {named(reason) for reason, one in SAYINGS.items() if one.step == LOG}
        runs = everything - logs
        worker(lambda: runs_latest(kubelet, space, runs) and all(told()[one] == RUNNING for one in runs), within_s=120)
        # Two units of one of them.
        worker(lambda: used() == len(runs) + 1)
        again = {named(reason) for reason, one in SAYINGS.items() if one.then == ANEW} | set(map(named, TYPED))
        numbers = {run.workload.name: run.number for run in Run.objects.select_related("workload").order_by("number")}
        assert numbers == {one: 2 if one in again else 1 for one in everything}

        # Started again unchanged, it ends in the same way.
        actions.start("team-a", "terminated", by=by_alice)
        worker(lambda: "terminated" in [pod["metadata"]["labels"][WORKLOAD_LABEL] for pod in pending(admin, space)])
        replay(kubelet, pod_of("terminated"), CASES["terminated"])
        worker(lambda: Run.objects.filter(workload__name="terminated", reason="terminated").count() == 2)
        until_as_written(worker, by_alice, {"terminated": SAYINGS["terminated"]})
        assert beside() == before


def theirs(namespace: str) -> Json:
    meta = {"name": "theirs", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"of": "somebody else"}}


def named(reason: str) -> str:
    """The name of the workload: underscores are not allowed there."""
    return reason.replace("_", "-")
