"""Problems on the real control plane, each beside a neighbour: how the portal explains the cluster's own texts.

API server, quota, scheduler, Job controller, node controller and Kueue are real; the test scripts the kubelet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
from django.test import Client

from accounts.core.actor import Actor
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.controlplane import hardware
from devcluster.kubelet.scripted import ScriptedKubelet
from tenants.models import Namespace, Tenant
from tests.support.cluster.policies import ADMISSION, OF_WORKLOAD, PODS, denies, only, refusal, trial_pod
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.cases.live import MISSING, RUNNING, UNPROVIDED, never_provided, on_nodes, told
from tests.workloads.cases.run_state import shown
from tests.workloads.cases.situations import as_written
from tests.workloads.cases.situations_nodes import ON_NODES
from tests.workloads.cases.situations_queue import IN_QUEUE
from tests.workloads.cases.staged import until_as_written
from tests.workloads.cases.steps_followed import by_hand, follow, help_of
from workloads.core import workload_sql
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec
from workloads.models import Workload
from workloads.status import queries, workload_row

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]

# A fixture of another module, by name.
__all__ = ["by_hand"]

Play = Callable[[ScriptedKubelet, Json], object]


@pytest.fixture
def cpu(cluster: Cluster, unique: str) -> GpuClass:
    """A class without GPUs: other tests need the few simulated GPUs. One core and 1 GiB a unit."""
    return make.gpu_class(
        cluster, slug=f"cpu-{unique}", name="CPU", interface="none", resource="", node_labels={}, tolerations=[],
        vendor="", product="", cpu_per_unit=1, memory_gib_per_unit=1, units_per_workload=1000,
    )  # fmt: skip


@pytest.fixture
def absent(cluster: Cluster, unique: str) -> GpuClass:
    """A class whose nodes do not exist in the cluster."""
    return make.gpu_class(
        cluster, slug=f"absent-{unique}", name="Absent", interface="none", resource="", tolerations=[], vendor="",
        product="", cpu_per_unit=1, memory_gib_per_unit=1, node_labels={"example.org/kind": f"none-{unique}"},
    )  # fmt: skip


@pytest.fixture
def team(
    cpu: GpuClass, absent: GpuClass, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None
) -> Tenant:
    make.grant(team_a, cpu, units=2000)
    make.grant(team_a, absent, units=2)
    provision(namespace_a, kube_worker)
    return team_a


@pytest.fixture
def wanted(cpu: GpuClass, job: LaunchSpec) -> LaunchSpec:
    return replace(job, gpu_class=cpu.slug)


# ---- problems reported by scheduler and kubelet ----------------------------------------------------------------------


@dataclass(frozen=True)
class Staged:
    """`words`: a part of the sentence; with several `attempts` (pods that the Job has created), of the end of the
    previous one.

    `play` None: the pod is never bound to a node. `stuck`: the step that stands still with the text behind it, "" for
    none.
    """

    play: Play | None
    phase: str
    reason: str
    words: str
    stuck: str = ""
    volume: str = ""
    repository: str = ""
    attempts: int = 1
    units: int = 1
    is_absent: bool = False


ALREADY = 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) other-1-x'
NOT_MOUNTED = 'MountVolume.MountDevice failed for volume "pvc-1" : rpc error: code = Internal desc = bad'
NO_FILE = 'unable to start container process: exec: "trian.py": executable file not found in $PATH: unknown'
FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has"
COURSE = "https://git.example.org/course.git"
NO_COURSE = f"fatal: repository '{COURSE}/' not found"

# The Job creates another pod at once; the step of the node shows why the previous pod ended.
AGAIN = ("preparing", "preparing")
STAGED: dict[str, Staged] = {
    "absent": Staged(
        lambda k, p: k.pull_error(p, MISSING), "blocked", "image_not_found", "was not found in its registry", "Image"
    ),
    "locked": Staged(ScriptedKubelet.pull_error, "blocked", "image_not_allowed", "it requires authentication", "Image"),
    "pulling": Staged(ScriptedKubelet.pulling, "preparing", "pulling", "pulling the image"),
    "elsewhere": Staged(
        lambda k, p: k.attach_error(p, ALREADY), "blocked", "volume_in_use", "by other-1-x", "Storage", volume="one"
    ),
    "unmounted": Staged(
        lambda k, p: k.mount_error(p, NOT_MOUNTED), "blocked", "volume_not_mounted", "cannot mount", "Storage", "two"
    ),
    "crashed": Staged(lambda k, p: k.exited(p, 3), "failed", "crashed", "exit code 3", "Ended"),
    "hungry": Staged(
        ScriptedKubelet.oom_killed, "failed", "out_of_memory", "exceeded its host memory limit of 1 GiB", "Ended"
    ),
    "killed": Staged(lambda k, p: k.exited(p, 137), "failed", "killed", "the cluster reports no cause", "Ended"),
    "full": Staged(
        lambda k, p: k.exited(p, 1, message=FULL), "failed", "out_of_gpu_memory", "Tried to allocate 20.00 GiB", "Ended"
    ),
    "mistyped": Staged(
        lambda k, p: k.exited(p, 128, reason="StartError", message=NO_FILE),
        "failed", "command_not_found", "trian.py was not found", "Ended",
    ),
    "nowhere": Staged(
        lambda k, p: k.init_failed(p, 128, NO_COURSE), "failed", "repository_not_found", COURSE, "Repository",
        repository=COURSE,
    ),
    "cloning": Staged(
        ScriptedKubelet.initializing, "preparing", "cloning", "cloning the repository", repository=COURSE
    ),
    "refused": Staged(
        ScriptedKubelet.unexpected_admission, *AGAIN, "nvidia.com/gpu: 1 requested, 0 available", attempts=2
    ),
    "split": Staged(ScriptedKubelet.topology_affinity, *AGAIN, "on the same NUMA node", attempts=2),
    "overbooked": Staged(
        lambda k, p: k.out_of(p, "cpu", asked=2000, capacity=64000), *AGAIN, "cpu: 2 cores requested, 64 of 64 used",
        attempts=2,
    ),
    "evicted": Staged(ScriptedKubelet.evicted, *AGAIN, "ran low on memory (52 MiB left)", attempts=2),
    "unknown": Staged(None, "blocked", "no_node_matches", "do not match the class", "Node assigned", is_absent=True),
    "wide": Staged(None, "blocked", "no_cpu_or_memory", "too little cpu free", "Node assigned", units=900),
    "stored": Staged(
        None, "blocked", "volume_unbound", "has not provisioned it yet", "Node assigned", volume=UNPROVIDED
    ),
    "fine": Staged(ScriptedKubelet.running, "running", "running", "Running on"),
}  # fmt: skip


@pytest.mark.usefixtures("cordons_alone")
def test_what_scheduler_and_kubelets_say(
    team: Tenant, absent: GpuClass, namespace_a: Namespace, wanted: LaunchSpec, by_alice: Actor, worker: Worker,
    admin: Api, unique: str,
) -> None:  # fmt: skip
    kubelet = ScriptedKubelet(admin)
    details: dict[str, workload_row.WorkloadRow] = {}
    played = {name: staged.play for name, staged in STAGED.items() if staged.play}
    admin.create(never_provided(namespace_a.name, unique))

    def all_heard() -> bool:
        for row in queries.workload_rows(workload_sql.with_related(Workload.objects.all())):
            staged, status = STAGED[row.workload.name], row.status
            found = (str(status.phase), status.reason, status.facts.get("attempts", 1))
            if found == (staged.phase, staged.reason, staged.attempts):
                details[row.workload.name] = row
        return len(details) == len(STAGED)

    with kubelet.claim(namespace_a.name):
        for name, staged in STAGED.items():
            options = Options(repository=staged.repository)
            asked = replace(wanted, name=name, units=staged.units, volume=staged.volume, options=options)
            asked = replace(asked, gpu_class=absent.slug) if staged.is_absent else asked
            actions.launch("team-a", asked, by=by_alice)
        worker(lambda: played.keys() <= set(on_nodes(admin, namespace_a.name)))
        for name, play in played.items():
            play(kubelet, kubelet.bound(namespace_a.name, labels=f"gpu-portal/workload={name}"))
        worker(all_heard)

    for name, staged in STAGED.items():
        row = details[name]
        node = next(step.note for step in row.steps if step.title == "Node assigned")
        assert staged.words in (row.status.sentence if staged.attempts == 1 else node), name
        stuck = [step.title for step in row.steps if step.state == "stuck"]
        assert stuck == ([staged.stuck] if staged.stuck else []), name
        assert bool(staged.stuck) == any(step.problem and step.raw for step in row.steps), name
    raw = {name: next((step.raw for step in row.steps if step.raw), "") for name, row in details.items()}
    assert (MISSING in raw["absent"], ALREADY in raw["elsewhere"], NO_COURSE in raw["nowhere"]) == (True, True, True)


# ---- refusals by the API server, quotas and policies -----------------------------------------------------------------


@contextmanager
def admission(admin: Api, namespace: str, name: str) -> Iterator[None]:
    """In this namespace, a policy refuses pods of `denied`, and the webhook for pods of `silent` does not answer."""
    unless, message = f"!({OF_WORKLOAD.format('denied')})", "this image is not allowed here"
    denial = denies(
        admin, namespace, name, rules=PODS, unless=unless, message=message,
        until=lambda: message in refusal(admin, trial_pod(namespace, "denied")),
    )  # fmt: skip
    admin.create(webhook(name, namespace))
    try:
        wait_until(lambda: "images.example.org" in refusal(admin, trial_pod(namespace, "silent")))
        with denial:
            yield
    finally:
        admin.delete(f"{ADMISSION}/validatingwebhookconfigurations", name)


STOOD_IN_THE_WAY = {
    "over quota at ResourceQuota": "second",
    "larger than ResourceQuota": "large",
    "LimitRange": "larger",
    "admitted but pod refused": "denied",
    "webhook down": "silent",
}


def webhook(name: str, namespace: str) -> Json:
    return {
        "apiVersion": ADMISSION, "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": "images.example.org", "rules": PODS, "failurePolicy": "Fail", "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "timeoutSeconds": 1, **only(namespace),
                "objectSelector": {"matchLabels": {"gpu-portal/workload": "silent"}},
                "clientConfig": {"url": "https://127.0.0.1:9/check"},
            }
        ],
    }  # fmt: skip


def quota(namespace: str, **hard: str) -> Json:
    return {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tight", "namespace": namespace},
        "spec": {"hard": {f"requests.{name}": most for name, most in hard.items()}},
    }  # fmt: skip


def limits(namespace: str, **most: str) -> Json:
    return {
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small", "namespace": namespace},
        "spec": {"limits": [{"type": "Container", "max": most}]},
    }  # fmt: skip


def test_what_the_cluster_refuses(
    team: Tenant, namespace_a: Namespace, wanted: LaunchSpec, by_alice: Actor, by_hand: Client, worker: Worker,
    admin: Api, unique: str,
) -> None:  # fmt: skip
    """A quota of 8 cores, of which two jobs use 5; a limit of 10 for a container; a policy; an unreachable webhook."""
    admin.create(quota(namespace_a.name, cpu="8"))
    admin.create(limits(namespace_a.name, cpu="10", memory="100Gi"))
    for name, units in {"first": 4, "fits": 1}.items():
        actions.launch("team-a", replace(wanted, name=name, units=units), by=by_alice)
    worker(lambda: told() == dict.fromkeys(("first", "fits"), RUNNING))
    with admission(admin, namespace_a.name, f"refuse-{unique}"):
        for name, units in {"second": 4, "large": 9, "larger": 12, "denied": 1, "silent": 1}.items():
            actions.launch("team-a", replace(wanted, name=name, units=units), by=by_alice)
        expected = {
            "first": ("running", "running"),
            "second": ("preparing", "quota_full"),
            "large": ("blocked", "quota_too_small"),
            "larger": ("blocked", "limit_range"),
            "fits": ("running", "running"),
            "denied": ("blocked", "image_not_accepted"),
            "silent": ("preparing", "admission_unavailable"),
        }
        worker(lambda: told() == expected)

        said = {name: (shown(name).status, help_of(by_alice, name)) for name in expected.keys() - {"first", "fits"}}
        for written, name in STOOD_IN_THE_WAY.items():
            as_written(IN_QUEUE[written], *said[name])
        less = said["large"][1].steps[0].href
        assert less == "/teams/team-a/workloads/large/change#id_cpu"
        follow(by_hand, said["larger"][1].steps[0].href, cpu="1")
        worker(lambda: told()["larger"] == RUNNING)
    # Operators have removed the policy and the webhook; then other work ends.
    worker(lambda: (told()["denied"], told()["silent"]) == (RUNNING, RUNNING))
    actions.stop("team-a", "first", by=by_alice)
    worker(lambda: told()["second"] == RUNNING)
    actions.stop("team-a", "larger", by=by_alice)
    follow(by_hand, less, cpu="1")
    worker(lambda: told()["large"] == RUNNING)


# ---- lost nodes ------------------------------------------------------------------------------------------------------


@pytest.fixture
def own_node(admin: Api, unique: str) -> Iterator[str]:
    """A node with four GPUs of its own product, which no other pods request; it has the python image."""
    name, product = f"own-{unique}", f"OWN-{unique}"
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    labels = {"nvidia.com/gpu": {"product": product, "present": True}}
    node = hardware.node(name, devices={"nvidia.com/gpu": 4}, labels=labels, taints=[taint])
    node["status"]["images"] = [{"names": ["docker.io/library/python:3.14-slim"], "sizeBytes": 3 * 2**30}]
    hardware.add(admin, node)
    yield name
    admin.delete("v1/nodes", name)


def test_a_node_that_is_lost_and_comes_back(
    cluster: Cluster, own_node: str, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None,
    job: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api, unique: str,
) -> None:  # fmt: skip
    """Also checks what the portal shows of the image on the node before the container runs."""
    own = make.gpu_class(cluster, slug=f"own-{unique}", node_labels={"nvidia.com/gpu.product": f"OWN-{unique}"})
    make.grant(team_a, own, units=2)
    provision(namespace_a, kube_worker)
    kubelet = ScriptedKubelet(admin)
    with kubelet.claim(namespace_a.name):
        actions.launch("team-a", replace(job, gpu_class=own.slug), by=by_alice)
        worker(lambda: on_nodes(admin, namespace_a.name))
        kubelet.pulling(pod := kubelet.bound(namespace_a.name))
        worker(lambda: told() == {"train": ("preparing", "pulling")})
        image = next(step for step in shown("train").steps if step.title == "Image")
        assert (image.state, image.note) == (
            "busy", f"On {own_node}: pulling the image. 3.0 GiB, already on {own_node}.",
        )  # fmt: skip
        kubelet.running(pod)
        worker(lambda: told() == {"train": ("running", "running")})

        kubelet.node_lost(own_node)
        until_as_written(worker, by_alice, {"train": ON_NODES["node lost"]})
        kubelet.node_back(own_node)
        worker(lambda: told() == {"train": ("running", "running")})
