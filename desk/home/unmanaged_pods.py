"""Pods in a team's namespace that use devices and belong to no run."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db import connection

from cluster.models import MirrorPod
from cluster.reads import queries as mirror
from desk.nodes.allocations import devices_text
from portal.core.due import table_label
from tenants.models import Namespace
from workloads.models import Workload


@dataclass(frozen=True)
class UnmanagedPod:
    """`units`: "2 nvidia.com/gpu", with the cluster's resource names, because the class is unknown. `node`: "" for a
    claim that no pod uses.
    """

    name: str
    units: str
    node: str
    since: datetime


class _Pod(NamedTuple):
    name: str
    node: str
    owner: str
    created_at: datetime
    job_uid: str
    requests: Mapping[str, int]


# Bound to a node and not finished.
_PODS = f"""
SELECT name, node, owner, created_at, coalesce(record ->> 'job_uid', ''), record -> 'requests'
  FROM {MirrorPod._meta.db_table}
 WHERE cluster_id = %s AND namespace = %s AND phase NOT IN ('Succeeded', 'Failed') AND node <> ''"""


def unmanaged_pods(namespace: Namespace, owners: Collection[str]) -> tuple[UnmanagedPod, ...]:
    """Returns them sorted by name. `owners`: labels of workloads that are known already. Two queries; one more if a pod
    has the label of another workload. Of a namespace that is not adopted nothing is shown.
    """
    if namespace.origin == Namespace.Origin.UNADOPTED:
        return ()
    with connection.cursor() as cursor:
        cursor.execute(_PODS, [namespace.cluster_id, namespace.name])
        pods = [
            _Pod(name, node, owner, since, job, json.loads(requests))
            for name, node, owner, since, job, requests in cursor.fetchall()
        ]
    ours = _of_runs(namespace, pods, owners)
    found = [line for pod in pods if pod.name not in ours and (line := _line(pod)) is not None]
    found += _claims(namespace, {pod.name: pod for pod in pods}, ours)
    return tuple(sorted(found, key=lambda one: (one.name, one.units)))


def _of_runs(namespace: Namespace, pods: Iterable[_Pod], owners: Collection[str]) -> set[str]:
    """Names of pods created by Jobs of this namespace's workloads. A label alone proves nothing: any user can
    set it.
    """
    made = [pod for pod in pods if pod.owner and pod.job_uid]
    prefix = f"{table_label(Workload)}."
    unknown = {pod.owner for pod in made} - set(owners)
    ids = [int(rest) for owner in unknown if (rest := owner.removeprefix(prefix)) != owner and rest.isdigit()]
    known = set(owners)
    if ids:
        there = Workload.objects.filter(namespace=namespace, pk__in=ids).values_list("pk", flat=True)
        known |= {f"{prefix}{pk}" for pk in there}
    return {pod.name for pod in made if pod.owner in known}


def _line(pod: _Pod) -> UnmanagedPod | None:
    held = devices_text(pod.requests)
    return UnmanagedPod(pod.name, held, pod.node, pod.created_at) if held else None


def _claims(namespace: Namespace, pods: Mapping[str, _Pod], ours: Collection[str]) -> Iterable[UnmanagedPod]:
    for claim in mirror.objects(namespace.cluster_id, kind="ResourceClaim", namespace=namespace.name):
        devices, users = claim.record["devices"], claim.record["used_by"]
        # Claims whose pods are all finished are about to be released.
        if not devices or (users and not any(name in pods and name not in ours for name in users)):
            continue
        by_driver: dict[str, int] = {}
        for device in devices:
            by_driver[device["driver"]] = by_driver.get(device["driver"], 0) + 1
        units = ", ".join(f"{count} {driver}" for driver, count in sorted(by_driver.items()))
        user = next((pods[name] for name in users if name in pods), None)
        name, node = (user.name, user.node) if user else (f"claim {claim.name}", "")
        yield UnmanagedPod(name, units, node, claim.created_at)
