"""Pods in a team's namespace that hold devices and are of no run: shown as what they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from catalog import discovery
from cluster import queries as mirror
from cluster.models import MirrorPod
from portal.due import label
from tenants.models import Namespace
from workloads.models import Workload


@dataclass(frozen=True)
class NotOurs:
    """`units`: "2 nvidia.com/gpu", in the cluster's words: of which class they are nobody said. `node`: "" of a claim
    that no pod uses.
    """

    name: str
    units: str
    node: str
    since: datetime


def not_ours(namespace: Namespace, owners: Collection[str]) -> tuple[NotOurs, ...]:
    """By name. `owners`: labels of workloads that are known already. Two queries; one more where a pod has the label
    of another workload.
    """
    rows = MirrorPod.objects.filter(cluster_id=namespace.cluster_id, namespace=namespace.name)
    alive = rows.exclude(phase__in=("Succeeded", "Failed")).exclude(node="")
    names = ("name", "node", "owner", "created_at", "record__requests", "record__job_uid")
    pods: list[dict[str, Any]] = list(alive.values(*names))
    ours = _of_runs(namespace, pods, owners)
    found = [line for pod in pods if pod["name"] not in ours and (line := _line(pod)) is not None]
    found += _claims(namespace, {pod["name"]: pod for pod in pods}, ours)
    return tuple(sorted(found, key=lambda one: (one.name, one.units)))


def _of_runs(namespace: Namespace, pods: Iterable[Mapping[str, Any]], owners: Collection[str]) -> set[str]:
    """Names of the pods that a Job of a workload of this namespace made. A label alone can be written by anybody."""
    made = [pod for pod in pods if pod["owner"] and pod["record__job_uid"]]
    prefix = f"{label(Workload)}."
    unknown = {pod["owner"] for pod in made} - set(owners)
    ids = [int(rest) for owner in unknown if (rest := owner.removeprefix(prefix)) != owner and rest.isdigit()]
    known = set(owners)
    if ids:
        there = Workload.objects.filter(namespace=namespace, pk__in=ids).values_list("pk", flat=True)
        known |= {f"{prefix}{pk}" for pk in there}
    return {pod["name"] for pod in made if pod["owner"] in known}


def _line(pod: Mapping[str, Any]) -> NotOurs | None:
    requests: dict[str, int] = pod["record__requests"]
    held = [f"{units} {name}" for name, units in sorted(requests.items()) if units and discovery.is_device(name)]
    return NotOurs(pod["name"], ", ".join(held), pod["node"], pod["created_at"]) if held else None


def _claims(namespace: Namespace, pods: Mapping[str, Mapping[str, Any]], ours: Collection[str]) -> Iterable[NotOurs]:
    for claim in mirror.objects(namespace.cluster_id, kind="ResourceClaim", namespace=namespace.name):
        devices, users = claim.record["devices"], claim.record["used_by"]
        # Those whose pods are all over are about to be given back.
        if not devices or (users and not any(name in pods and name not in ours for name in users)):
            continue
        by_driver: dict[str, int] = {}
        for device in devices:
            by_driver[device["driver"]] = by_driver.get(device["driver"], 0) + 1
        units = ", ".join(f"{count} {driver}" for driver, count in sorted(by_driver.items()))
        user = next((pods[name] for name in users if name in pods), None)
        name, node = (user["name"], user["node"]) if user else (f"claim {claim.name}", "")
        yield NotOurs(name, units, node, claim.created_at)
