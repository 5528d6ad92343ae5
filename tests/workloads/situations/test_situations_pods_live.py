"""Problems of pods and storage on the real control plane: reported as written, and the result of the first step.

API server, scheduler, Job controller, volume binder and Kueue are real; the test scripts the kubelet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from catalog.models import GpuClass, Image
from cluster.client.kube import Kube
from cluster.models import AppliedObject
from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.kubelet.scripted import ScriptedKubelet
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.workloads.cases.live import MISSING, UNPROVIDED, never_provided, on_nodes, told
from tests.workloads.cases.situations_nodes import ON_NODES
from tests.workloads.cases.staged import until_as_written
from tests.workloads.cases.steps_followed import by_hand, follow
from tests.workloads.situations.test_problems_live import cpu
from workloads.credentials.secrets import actions as secret_actions
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec
from workloads.models import Run
from workloads.storage import policy as storage_policy

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]

# Fixtures of other modules, by name.
__all__ = ["by_hand", "cpu"]

RUNNING = ("running", "running")
# Launched with a secret of the team, which the test damages in the cluster.
SEALED = ("config", "robbed")
# Refused by the kubelet of their node.
REFUSED = ("refused", "split")
CLAIMS, VOLUMES = "v1/persistentvolumeclaims", "v1/persistentvolumes"


def test_what_pods_and_storage_hold_up(
    cpu: GpuClass, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None, job: LaunchSpec,
    by_alice: Actor, by_hand: Client, worker: Worker, admin: Api, unique: str, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    make.grant(team_a, cpu, units=50)
    provision(namespace_a, kube_worker)
    space, kubelet = namespace_a.name, ScriptedKubelet(admin)
    admin.create(never_provided(space, unique))
    admin.create(claim_of_away(space, unique))
    Image.objects.create(name="newer", reference="docker.io/library/python:3.15-slim", kind="job")
    secret_actions.put_secret("team-a", "MINE", "value", by=by_alice)

    def ask(name: str, *, units: int = 1, volume: str = "", options: Options | None = None) -> None:
        wanted = replace(job, name=name, gpu_class=cpu.slug, units=units, volume=volume, options=options or Options())
        actions.launch("team-a", wanted, by=by_alice)

    with kubelet.claim(space), away(admin, space, unique):
        ask("before", volume="gone")
        worker(lambda: "before" in on_nodes(admin, space))
        kubelet.exited(kubelet.bound(space), 0)
        worker(lambda: Run.objects.filter(ended_at__isnull=False))
        actions.delete("team-a", "before", by=by_alice)
        admin.delete(CLAIMS, "gone", namespace=space)
        worker(lambda: admin.find(CLAIMS, "gone", namespace=space) is None)

        for name in ("pull", "crash", "oom", "refused"):
            ask(name)
        ask("split", units=2)
        for name in SEALED:
            ask(name, options=Options(secrets=("MINE",)))
        ask("unbound", volume=UNPROVIDED)
        with monkeypatch.context() as lagging:
            # The mirror has not heard yet what happened to the two volumes: a launch that knows is refused.
            lagging.setattr(storage_policy, "may_mount", lambda volume: None)
            ask("missing", volume="gone")
            ask("away", volume="away")
        plays = {
            "pull": lambda pod: kubelet.pull_error(pod, MISSING),
            "crash": lambda pod: kubelet.exited(pod, 3),
            "oom": kubelet.oom_killed,
            "refused": kubelet.unexpected_admission,
            "split": kubelet.topology_affinity,
            "config": lambda pod: without_its_key(kubelet, pod),
            "robbed": lambda pod: without_its_secret(kubelet, pod),
        }
        worker(lambda: plays.keys() <= set(on_nodes(admin, space)) and all(is_whole(admin, space, n) for n in SEALED))
        # The Secrets count as old: errors of the kubelet in the first moments are not reported.
        AppliedObject.objects.filter(kind="Secret").update(sent_at=timezone.now() - timedelta(minutes=1))
        for name, play in plays.items():
            play(kubelet.bound(space, labels=f"gpu-portal/workload={name}"))
        written = {
            "pull": ON_NODES["image pull"],
            "crash": ON_NODES["crash"],
            "oom": ON_NODES["OOM"],
            "refused": ON_NODES["kubelet admission"],
            "split": ON_NODES["topology"],
            "config": ON_NODES["configuration missing"],
            "robbed": ON_NODES["secret missing"],
            "unbound": ON_NODES["PVC unbound"],
            "missing": ON_NODES["PVC missing"],
            "away": ON_NODES["PVC elsewhere"],
        }

        def refusing(until: Callable[[], object], *, within_s: float = 60) -> None:
            """The Job creates another pod some seconds later: that pod is refused as well."""

            def step() -> object:
                for pod in admin.list("v1/pods", namespace=space):
                    name = pod["metadata"]["labels"]["gpu-portal/workload"]
                    if name in REFUSED and pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
                        plays[name](pod)
                return until()

            worker(step, within_s=within_s)

        # One wait for all: the portal restores the two Secrets within a minute.
        first = until_as_written(refusing, by_alice, written)

        assert first["crash"].steps[0].href == "/live/logs/team-a/crash"
        follow(by_hand, first["pull"].steps[0].href, image="newer")
        follow(by_hand, first["oom"].steps[0].href, units="2")
        follow(by_hand, first["split"].steps[0].href)
        for name in ("missing", "away"):
            follow(by_hand, first[name].steps[0].href, volume="")
        with provided(admin, unique):
            expected = first.keys() - {"crash"}
            all_run = partial(kubelet_runs, kubelet, space, expected)
            worker(lambda: all_run() and all(told()[name] == RUNNING for name in expected), within_s=120)
        assert told()["crash"][0] == "failed"
        runs = {name: Run.objects.filter(workload__name=name).count() for name in ("refused", *SEALED, "oom")}
        assert runs == {"refused": 1, "config": 1, "robbed": 1, "oom": 2}


def without_its_key(kubelet: ScriptedKubelet, pod: Json) -> None:
    """The Secret in the cluster has lost its key."""
    namespace = pod["metadata"]["namespace"]
    kubelet.api.patch("v1/secrets", "config-1", {"data": {"secret.MINE": None}}, namespace=namespace)
    kubelet.config_error(pod, f"couldn't find key secret.MINE in Secret {namespace}/config-1")


def without_its_secret(kubelet: ScriptedKubelet, pod: Json) -> None:
    kubelet.api.delete("v1/secrets", "robbed-1", namespace=pod["metadata"]["namespace"])
    kubelet.config_error(pod, 'secret "robbed-1" not found')


def kubelet_runs(kubelet: ScriptedKubelet, namespace: str, names: set[str]) -> bool:
    """Starts each pending pod on a node; a pod that needs its Secret waits until the Secret is complete."""
    begun = set()
    for pod in kubelet.api.list("v1/pods", namespace=namespace):
        name = pod["metadata"]["labels"]["gpu-portal/workload"]
        if "deletionTimestamp" in pod["metadata"] or not pod["spec"].get("nodeName"):
            continue
        if pod["status"]["phase"] == "Pending" and (name not in SEALED or is_whole(kubelet.api, namespace, name)):
            if not waits_in_vain(pod):
                kubelet.running(pod)
        elif pod["status"]["phase"] == "Running":
            begun.add(name)
    return begun >= names


def is_whole(admin: Api, namespace: str, name: str) -> bool:
    found = admin.find("v1/secrets", f"{name}-1", namespace=namespace)
    return found is not None and "secret.MINE" in found.get("data", {})


def waits_in_vain(pod: Json) -> bool:
    """True if the pod waits for an image that does not exist."""
    states = [one["state"].get("waiting", {}) for one in pod["status"].get("containerStatuses", ())]
    return any(state.get("reason") == "ErrImagePull" for state in states)


def claim_of_away(namespace: str, unique: str) -> Json:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "away", "namespace": namespace},
        "spec": {**wanted, "volumeName": f"away-{unique}"},
    }  # fmt: skip


@contextmanager
def away(admin: Api, namespace: str, unique: str) -> Iterator[None]:
    """A volume on the disk of a node that is not in the cluster. It is reserved for its claim: otherwise any claim
    without a storage class may get it, as that of another test.
    """
    name, key = f"away-{unique}", "kubernetes.io/hostname"
    claim_ref = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": "away"}
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [f"none-{unique}"]}]}
    admin.create(
        {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "local": {"path": "/none"},
                "claimRef": claim_ref, "storageClassName": "",
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            },
        }
    )  # fmt: skip
    try:
        yield
    finally:
        admin.delete(VOLUMES, name)


@contextmanager
def provided(admin: Api, unique: str) -> Iterator[None]:
    """Creates the volume that the unbound claim waits for."""
    name = f"pv-{unique}"
    admin.create(
        {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/none"},
                "storageClassName": f"none-{unique}", "persistentVolumeReclaimPolicy": "Retain",
            },
        }
    )  # fmt: skip
    try:
        yield
    finally:
        admin.delete(VOLUMES, name)
