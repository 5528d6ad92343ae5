"""Maintenance of a node from which a run is moved, and a change of its MIG layout."""

from __future__ import annotations

from typing import Any

from accounts.core.actor import Actor
from accounts.models import User
from cluster.models import Cluster
from devcluster.controlplane import hardware
from devcluster.kubelet.mig_manager import MigManager
from operations.maintenance import actions
from operations.models import Maintenance, MaintenanceNode
from tests.faults.crashes.operations.common import look, mails_are_sent, quiet, team
from tests.faults.crashes.operations.runs import JOB, is_running, known
from tests.faults.crashes.types import Ground, Operation, Place
from tests.operations.maintenance.lab import CONFIG, GPU, NVIDIA_TAINT, OWN, STATE, DyingKube, Lab, nodes_of
from tests.support.cluster.worker import provision
from tests.support.rows import make
from tests.support.waiting import wait_until

BY_HAND = "It waits until an operator says that the work is done."
_managers: dict[str, MigManager] = {}


def add_node(ground: Ground, place: Place, number: int) -> str:
    name = f"{place.name}-node-{number}"
    labels = {
        "nvidia.com/gpu.product": place.name, "nvidia.com/gpu.count": "4", CONFIG: "all-disabled", STATE: "success",
        "nvidia.com/gpu.memory": "81920", "nvidia.com/gpu.replicas": "1", "nvidia.com/gpu.sharing-strategy": "none",
        OWN: place.name,
    }  # fmt: skip
    hardware.add(ground.admin, hardware.node(name, devices={GPU: 4}, labels=labels, taints=[NVIDIA_TAINT]))

    def is_ready() -> bool:
        conditions = ground.admin.get("v1/nodes", name)["status"].get("conditions", [])
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    wait_until(is_ready, within_s=30, every_s=0.05)
    return name


def nodes(ground: Ground, place: Place) -> list[Any]:
    return [node for node in ground.admin.list("v1/nodes") if node["metadata"]["name"].startswith(place.name)]


def lab(ground: Ground, place: Place, node: str) -> Lab:
    by = Actor(User.objects.get(name="Olga"), via="page")
    return Lab(ground.admin, Cluster.objects.get(), DyingKube(ground.kube), by, node)


def plan(place: Place) -> None:
    """Asked again, a person first looks whether it is planned."""
    if not Maintenance.objects.exists():
        row = Lab(None, Cluster.objects.get(), None, Actor(User.objects.get(name="Olga"), "page"), place.known["node"])  # type: ignore[arg-type]
        row.plan(**place.known["plan"])


def states(ground: Ground, place: Place) -> Any:
    found = [lab(ground, place, node["metadata"]["name"]).state() for node in nodes(ground, place)]
    return sorted(found, key=str)


def remove(ground: Ground, place: Place) -> None:
    if place.name in _managers:
        _managers.pop(place.name).__exit__(None, None, None)
    for node in nodes(ground, place):
        ground.admin.delete("v1/nodes", node["metadata"]["name"])


def ended(ground: Ground, place: Place) -> bool:
    return all(one.outcome for one in Maintenance.objects.all()) and mails_are_sent()


# ---- a run is moved off the node ---------------------------------------------------------------------------------


def on_a_node(ground: Ground, place: Place) -> dict[str, Any]:
    for number in (1, 2):
        add_node(ground, place, number)
    found = team(place)
    own = make.gpu_class(found.cluster, slug=f"own-{place.name}", name="Own", node_labels={OWN: place.name})
    make.grant(found.tenant, own, units=8)
    provision(found.namespace, ground.kube)
    look(ground, place, Node=nodes(ground, place))
    # A program that fails when it is stopped would end a Job without retries.
    told = known(found, **{**JOB, "options": {"retries": 3}})
    told["body"]["gpu_class"] = own.slug
    there = Place(place.name, place.kubeconfig, place.directory, told)
    ground.call("launch", there)

    def is_there() -> bool:
        ground.work(there)
        world(ground, there)
        return is_running()

    wait_until(is_there, within_s=60, every_s=0.05, what="it runs")
    node = nodes_of(ground.admin, place.name)["train"]
    return {**told, "node": node, "plan": {"kind": "hardware", "mig_config": "", "expected": {}}}


def world(ground: Ground, place: Place) -> None:
    """An operator says that the work is done as soon as the portal asks."""
    quiet(ground, place)
    look(ground, place, Node=nodes(ground, place))
    for row in MaintenanceNode.objects.filter(problem=BY_HAND, maintenance__ended_at=None):
        if Maintenance.objects.filter(pk=row.maintenance_id, confirmed_at=None).exists():
            actions.confirm_maintenance(row.maintenance_id, by=Actor(User.objects.get(name="Olga"), "page"))


def is_moved(ground: Ground, place: Place) -> bool:
    elsewhere = nodes_of(ground.admin, place.name).get("train", place.known["node"]) != place.known["node"]
    return ended(ground, place) and elsewhere and is_running()


# ---- MIG -----------------------------------------------------------------------------------------------------------


def with_mig(ground: Ground, place: Place) -> dict[str, Any]:
    node = add_node(ground, place, 1)
    team(place)
    look(ground, place, Node=nodes(ground, place))
    _managers[place.name] = MigManager(ground.admin, labels=f"{OWN}={place.name}", pause_s=0.05)
    _managers[place.name].__enter__()
    return {"node": node, "plan": {}}


def look_at_nodes(ground: Ground, place: Place) -> None:
    """The MIG manager has done what the label says."""

    def is_quiet() -> bool:
        labels = nodes(ground, place)[0]["metadata"]["labels"]
        return bool(labels.get(STATE) == "success")

    wait_until(is_quiet, within_s=10, every_s=0.05)
    look(ground, place, Node=nodes(ground, place))


OPERATIONS: dict[str, Operation] = {
    "maintenance": Operation(on_a_node, plan, is_moved, world, states, remove),
    "MIG change": Operation(with_mig, plan, ended, look_at_nodes, states, remove),
}
