"""Effects on a run of other work's claims to units, a site's policy and a slow registry, on the real control plane."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from devcluster.controlplane import hardware
from devcluster.kubelet import pod_status
from devcluster.kubelet.scripted import ScriptedKubelet
from tenants.models import Membership, Namespace, Tenant
from tests.support.cluster.policies import OF_WORKLOAD, PODS, changes, refusal, trial_pod
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.cases.live import is_open, of_team, on_nodes, play, told
from tests.workloads.cases.run_state import shown
from tests.workloads.cases.situations import as_written
from tests.workloads.cases.situations_nodes import ON_NODES
from tests.workloads.cases.situations_queue import IN_QUEUE
from tests.workloads.cases.steps_followed import by_hand, follow, help_of
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]

# A fixture of another module, by name.
__all__ = ["by_hand"]

IMAGE = "docker.io/library/python:3.14-slim"


@pytest.fixture
def own(admin: Api, cluster: Cluster, unique: str) -> Iterator[GpuClass]:
    """GPUs that no other work requests: four on one node, and one on each of two nodes that have the python image."""
    product = f"OWN-{unique}"
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    labels = {"nvidia.com/gpu": {"product": product, "present": True}}
    for name, cards in ((f"own-{unique}-1", 4), (f"own-{unique}-2", 1), (f"own-{unique}-3", 1)):
        node = hardware.node(name, devices={"nvidia.com/gpu": cards}, labels=labels, taints=[taint])
        if cards == 1:
            node["status"]["images"] = [{"names": [IMAGE], "sizeBytes": 3 * 2**30}]
        hardware.add(admin, node)
    yield make.gpu_class(
        cluster, slug=f"own-{unique}", name="Own", node_labels={"nvidia.com/gpu.product": product}, borrowing_limit=4
    )
    for number in (1, 2, 3):
        admin.delete("v1/nodes", f"own-{unique}-{number}")


@pytest.fixture
def four(own: GpuClass, job: LaunchSpec) -> LaunchSpec:
    return replace(job, gpu_class=own.slug, units=4, options=Options(checkpoints=True))


# ---- preempted and reclaimed units -----------------------------------------------------------------------------------


@pytest.fixture
def team_b(cluster: Cluster, own: GpuClass, unique: str, charlie: User) -> Tenant:
    """Charlie's team; it holds all four GPUs of the big node."""
    found = make.tenant(cluster, slug="team-b", namespace=f"team-b-{unique}")
    make.member(found, charlie, Membership.Role.OWNER)
    make.grant(found, own, units=4)
    return found


def test_units_are_taken_back_by_another_team_or_by_more_important_work_of_ones_own(
    own: GpuClass, four: LaunchSpec, team_a: Tenant, namespace_a: Namespace, team_b: Tenant, kube_worker: Kube,
    clean_cluster: None, by_alice: Actor, by_charlie: Actor, by_hand: Client, worker: Worker, admin: Api,
) -> None:  # fmt: skip
    """Team A borrows idle units of team B; B reclaims them, and then runs work of higher priority than its own job."""
    make.grant(team_a, own, units=1)
    namespace_b = Namespace.objects.get(tenant=team_b)
    provision(namespace_a, kube_worker)
    wait_until(lambda: is_open(namespace_b, kube_worker))
    kubelet = ScriptedKubelet(admin)
    # With an exit code the Job could fail, depending on timing, and another run would follow.
    with kubelet.claim(namespace_a.name, is_silent=True), kubelet.claim(namespace_b.name, is_silent=True):
        actions.launch("team-a", replace(four, name="borrows"), by=by_alice)
        play(kubelet, worker, namespace_a.name, "borrows")
        worker(lambda: of_team(team_a) == {"borrows": ("running", "running")})

        actions.launch("team-b", replace(four, name="unheard-of"), by=by_charlie)
        worker(lambda: of_team(team_a)["borrows"] == ("queued", "preempted"))
        play(kubelet, worker, namespace_b.name, "unheard-of")
        worker(lambda: of_team(team_b)["unheard-of"] == ("running", "running"))
        row = shown("borrows")
        as_written(IN_QUEUE["borrowed then reclaimed"], row.status, helps := help_of(by_alice, "borrows"))
        assert row.run is not None
        assert (row.run.ended_at, row.run.preemptions) == (None, 1)
        step = next(step for step in row.steps if step.state == "busy")
        assert (step.title, step.raw_from) == ("Queued", "Kueue")
        assert step.raw.startswith("Preempted to accommodate a workload due to reclamation within the cohort")
        assert step.remedy == "It restarts automatically. Unsaved work is lost."
        said = f"{row.status} {row.steps}"
        for word in ("unheard-of", "team-b", "Team B", "Charlie", "JobUID"):
            assert word not in said, "never another team's people or work"

        follow(by_hand, helps.steps[0].href)
        play(kubelet, worker, namespace_a.name, "borrows")
        worker(lambda: of_team(team_a) == {"borrows": ("running", "running")})

        notebook = replace(four, name="matters", kind="notebook", image="minimal", command=(), options=Options())
        actions.launch("team-b", notebook, by=by_charlie)
        worker(lambda: of_team(team_b)["unheard-of"] == ("queued", "preempted_in_team"))
        worker(lambda: of_team(team_b)["matters"][0] != "queued")
        written = IN_QUEUE["lower priority preempted"]
        as_written(written, shown("unheard-of").status, help_of(by_charlie, "unheard-of", "team-b"))
        actions.stop("team-b", "matters", by=by_charlie)
        play(kubelet, worker, namespace_b.name, "unheard-of")
        worker(lambda: of_team(team_b)["unheard-of"] == ("running", "running"))


# ---- an admission policy of the site ---------------------------------------------------------------------------------


def damaging(admin: Api, namespace: str, name: str) -> AbstractContextManager[None]:
    """A policy that gives pods of `damaged` the host network, as a site's automation might do."""
    return changes(
        admin, namespace, name, rules=PODS, when=OF_WORKLOAD.format("damaged"),
        to="Object{spec: Object.spec{hostNetwork: true}}",
        until=lambda: "hostNetwork=true" in refusal(admin, trial_pod(namespace, "damaged")),
    )  # fmt: skip


def test_pod_security_refuses_what_a_policy_of_the_site_has_made_of_a_pod(
    own: GpuClass, four: LaunchSpec, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None,
    by_alice: Actor, worker: Worker, admin: Api, unique: str,
) -> None:  # fmt: skip
    """The portal's own pods pass the same rules beside it."""
    make.grant(team_a, own, units=4)
    provision(namespace_a, kube_worker)
    with damaging(admin, namespace_a.name, f"damage-{unique}"):
        for name in ("damaged", "sound"):
            actions.launch("team-a", replace(four, name=name, units=1), by=by_alice)
        worker(lambda: told() == {"damaged": ("blocked", "pod_security"), "sound": ("running", "running")})
        row = shown("damaged")
        as_written(IN_QUEUE["Pod Security"], row.status, help_of(by_alice, "damaged"))
        stuck = next(step for step in row.steps if step.state == "stuck")
        assert stuck.title == "Node assigned"
        assert stuck.remedy == "Contact an operator. Your settings are not the cause."
        assert 'violates PodSecurity "restricted' in stuck.raw
        assert "hostNetwork=true" in stuck.raw
    # Operators have removed the policy.
    worker(lambda: told()["damaged"] == ("running", "running"))


# ---- a slow registry -------------------------------------------------------------------------------------------------


def test_an_image_that_takes_long_is_told_with_its_size_and_where_it_is_already(
    own: GpuClass, four: LaunchSpec, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None,
    by_alice: Actor, worker: Worker, admin: Api, unique: str,
) -> None:  # fmt: skip
    """Beside it, the same image pull shortly after its start."""
    make.grant(team_a, own, units=4)
    provision(namespace_a, kube_worker)
    kubelet = ScriptedKubelet(admin)
    with kubelet.claim(namespace_a.name):
        actions.launch("team-a", four, by=by_alice)
        worker(lambda: on_nodes(admin, namespace_a.name))
        pod = kubelet.pulling(kubelet.bound(namespace_a.name))
        worker(lambda: told() == {"train": ("preparing", "pulling")})

        began = (datetime.now(UTC) - timedelta(minutes=7)).replace(microsecond=0)
        condition = {"type": "PodReadyToStartContainers", "status": "True", "lastTransitionTime": f"{began:%FT%TZ}"}
        pod_status.report(admin, pod, {"conditions": [condition]})
        worker(lambda: told() == {"train": ("preparing", "image_slow")})
        row = shown("train")
        assert row.status.since == began
        assert row.status.facts["node"] == f"own-{unique}-1"
        as_written(ON_NODES["slow pull"], row.status, help_of(by_alice, "train"))
