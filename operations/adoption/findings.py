"""What an existing namespace contains, and what becomes of each thing when a team takes it over. Pure.

The reasons are rules of the cluster: deploy/base/fence-pods.yaml and fence-teams.yaml decide what may start in a team's
namespace, its NetworkPolicies what it reaches, and every ResourceQuota of a namespace counts every pod in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from cluster.apply.types import ObjectKey
from cluster.manifests import names
from cluster.manifests.adoption.labels import label_changes, labels_of
from cluster.manifests.metadata import Manifest
from cluster.manifests.specs import OBJECT_COUNTS
from portal.ui.text import first_names, plural

Body = Mapping[str, Any]
# Kinds whose pods come again when one ends, and what it is that the fence refuses then.
CONTROLLERS = ("Deployment", "StatefulSet", "DaemonSet", "CronJob")
# Everything that is read in the namespace. No Secrets and no ConfigMaps: they stay as they are.
READ_KINDS = (
    "ResourceQuota",
    "LimitRange",
    "LocalQueue",
    "RoleBinding",
    "NetworkPolicy",
    "Service",
    "ServiceAccount",
    "PersistentVolumeClaim",
    "Job",
    *CONTROLLERS,
)
# Controllers whose pods are told of with another kind.
_TOLD_ELSEWHERE = ("ReplicaSet", "StatefulSet", "DaemonSet", "Job")
_RUN_ON = "Pods that run go on. New ones are refused, because they are not in the team's queue."
_FIXED = "It cannot be changed any more, only deleted."


class Effect(StrEnum):
    """BLOCKED: nothing is adopted while it is so. LOST: the owner must accept it. CHANGED: undo puts it back. KEPT: it
    stays as it is.
    """

    BLOCKED = "blocked"
    LOST = "lost"
    CHANGED = "changed"
    KEPT = "kept"


@dataclass(frozen=True)
class Finding:
    effect: Effect
    code: str
    kind: str
    name: str
    text: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.code, self.kind, self.name

    def as_json(self) -> dict[str, str]:
        return {**asdict(self), "effect": str(self.effect)}


@dataclass(frozen=True)
class ForeignPod:
    """A pod that has not ended. `controller`: (kind, name) of what makes it again, None for a bare pod. `devices`:
    extended resources with their amounts.
    """

    name: str
    controller: tuple[str, str] | None
    devices: Mapping[str, int]


def findings_of(
    namespace: Body,
    pods: Collection[ForeignPod],
    found: Mapping[str, list[Body]],
    wanted: Collection[Manifest],
    taken: Collection[ObjectKey],
) -> list[Finding]:
    """`found`: all objects of READ_KINDS in the namespace; `wanted`: the manifests that the team gets; `taken`: those
    of them outside of the namespace whose name is taken. Ordered by effect, kind and name.
    """
    all_found = [
        *_blocks(namespace, found, wanted, taken),
        *_labels(namespace, wanted),
        *_limits(found),
        _own_quota(),
        *_queues(found["LocalQueue"]),
        *_rights(found["RoleBinding"]),
        *_controllers(found),
        *_pods(pods),
        *_network(pods, found),
        *_volumes(found["PersistentVolumeClaim"]),
    ]
    order = list(Effect)
    return sorted(all_found, key=lambda one: (order.index(one.effect), one.kind, one.name, one.code))


def losses(findings: Iterable[Mapping[str, str]]) -> set[tuple[str, str, str]]:
    """What the owner has to accept, of findings as they are stored."""
    return {(one["code"], one["kind"], one["name"]) for one in findings if one["effect"] == Effect.LOST}


def is_blocked(findings: Iterable[Mapping[str, str]]) -> bool:
    return any(one["effect"] == Effect.BLOCKED for one in findings)


def _blocks(
    namespace: Body, found: Mapping[str, list[Body]], wanted: Collection[Manifest], taken: Collection[ObjectKey]
) -> Iterable[Finding]:
    name = namespace["metadata"]["name"]
    if "deletionTimestamp" in namespace["metadata"]:
        yield Finding(Effect.BLOCKED, "terminating", "Namespace", name, "The namespace is being deleted.")
    there = {(kind, _name(body)) for kind, bodies in found.items() for body in bodies}
    for manifest in wanted:
        kind, meta = manifest["kind"], manifest["metadata"]
        key = (kind, meta.get("namespace", ""), meta["name"])
        if (kind, meta["name"]) in there or key in taken:
            text = f"The team needs a {kind} of this name, and there is one. Rename or delete it."
            yield Finding(Effect.BLOCKED, "name_taken", kind, meta["name"], text)


def _labels(namespace: Body, wanted: Collection[Manifest]) -> Iterable[Finding]:
    manifest = next(one for one in wanted if one["kind"] == "Namespace")
    for key, value in sorted(label_changes(namespace, manifest).items()):
        change = f"becomes {value}" if value is not None else "is removed"
        text = f"The label is {labels_of(namespace)[key]} and {change}; undo puts it back."
        yield Finding(Effect.CHANGED, "label", "Namespace", key, text)


def _own_quota() -> Finding:
    counts = _listed(f"{most} {key}" for key, most in sorted(OBJECT_COUNTS.items()))
    text = (
        f"The team's quota counts everything in the namespace. New objects beyond it are refused: {counts}. CPU and "
        "memory of pods that exist count too: the team can start less until they end."
    )
    return Finding(Effect.LOST, "own_quota", "ResourceQuota", names.QUOTA, text)


def _limits(found: Mapping[str, list[Body]]) -> Iterable[Finding]:
    for quota in found["ResourceQuota"]:
        used = quota.get("status", {}).get("used") or {}
        said = [f"{key} {used.get(key, '0')} of {most}" for key, most in sorted(_spec(quota).get("hard", {}).items())]
        text = f"It stays and counts the portal's pods too; the smaller quota applies. Used: {_listed(said)}."
        yield Finding(Effect.KEPT, "quota", "ResourceQuota", _name(quota), text)
    for limits in found["LimitRange"]:
        rules = _spec(limits).get("limits", [])
        text = "It stays, and applies to the portal's pods too."
        if any(rule.get("default") or rule.get("defaultRequest") for rule in rules):
            text += " Containers without requests get its defaults or those of the portal; which is not determined."
        if any(rule.get("max") or rule.get("maxLimitRequestRatio") for rule in rules):
            text += " It refuses pods above its maximum."
        yield Finding(Effect.KEPT, "limits", "LimitRange", _name(limits), text)


def _queues(queues: list[Body]) -> Iterable[Finding]:
    for queue in queues:
        status = queue.get("status", {})
        counts = f"{status.get('admittedWorkloads', 0)} admitted, {status.get('pendingWorkloads', 0)} pending"
        text = (
            f"It stays in ClusterQueue {_spec(queue).get('clusterQueue', '')} ({counts}). What it admits is outside of "
            "the team's quota."
        )
        yield Finding(Effect.KEPT, "queue", "LocalQueue", _name(queue), text)


def _rights(bindings: list[Body]) -> Iterable[Finding]:
    for binding in bindings:
        subjects = [f"{one['kind']} {one['name']}" for one in binding.get("subjects") or []]
        role = binding["roleRef"]
        text = f"{_listed(subjects) or 'Nobody'} keeps the rights of {role['kind']} {role['name']}."
        yield Finding(Effect.KEPT, "rights", "RoleBinding", _name(binding), text)


def _controllers(found: Mapping[str, list[Body]]) -> Iterable[Finding]:
    for kind in CONTROLLERS:
        for body in found[kind]:
            text = f"{_RUN_ON} Also replacements. {_FIXED}"
            yield Finding(Effect.LOST, "controller", kind, _name(body), text)
    # In one: where Jobs come and go, a list of them would change faster than somebody can accept it.
    if jobs := [job for job in found["Job"] if not _is_over(job) and not _controller(job)]:
        queues = sorted({labels_of(job).get("kueue.x-k8s.io/queue-name", "") for job in jobs} - {""})
        text = (
            f"{_RUN_ON} Also retries, and when queue {_listed(queues)} admits them."
            if queues
            else f"{_RUN_ON} Also retries."
        )
        told = first_names(sorted(map(_name, jobs)))
        yield Finding(Effect.LOST, "job", "Job", "all", f"{plural(len(jobs), 'Job')} ({told}). {text}")


def _pods(pods: Collection[ForeignPod]) -> Iterable[Finding]:
    others: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for pod in pods:
        total.update(pod.devices)
        if pod.controller is None:
            held = _listed(f"{number} {name}" for name, number in sorted(pod.devices.items()))
            text = "It runs on until it ends, outside of the queue." + (f" It holds {held}." if held else "")
            yield Finding(Effect.KEPT, "pod", "Pod", pod.name, text)
        elif pod.controller[0] not in _TOLD_ELSEWHERE:
            others[pod.controller[0]] += 1
    for kind, number in sorted(others.items()):
        text = f"{_RUN_ON} They have {plural(number, 'pod')}."
        yield Finding(Effect.LOST, "controller", kind, "all", text)
    for resource, number in sorted(total.items()):
        text = f"Pods of the namespace hold {number}: as long as they run, the team can use {number} less of its quota."
        yield Finding(Effect.KEPT, "devices_held", "Pod", resource, text)


def _network(pods: Collection[ForeignPod], found: Mapping[str, list[Body]]) -> Iterable[Finding]:
    if pods:
        text = (
            f"{plural(len(pods), 'pod')} can no longer be reached from other namespaces, and reach only each other, "
            "name servers and what the site opens; unless a NetworkPolicy of the namespace opens more."
        )
        yield Finding(Effect.LOST, "network", "Pod", "all", text)
    for service in found["Service"]:
        spec = _spec(service)
        if spec.get("type") != "ExternalName":
            fixed = "" if spec.get("clusterIP") == "None" else f" {_FIXED}"
            text = f"Type {spec.get('type', 'ClusterIP')}: only pods of this namespace reach it.{fixed}"
            yield Finding(Effect.LOST, "network", "Service", _name(service), text)
    for policy in found["NetworkPolicy"]:
        text = "It stays; what it opens stays open beside the portal's."
        yield Finding(Effect.KEPT, "network", "NetworkPolicy", _name(policy), text)


def _volumes(claims: list[Body]) -> Iterable[Finding]:
    for claim in claims:
        size = _spec(claim).get("resources", {}).get("requests", {}).get("storage", "unknown size")
        text = f"{size}. It stays with its data, and is not among the team's volumes in the portal."
        yield Finding(Effect.KEPT, "volume", "PersistentVolumeClaim", _name(claim), text)


def _controller(body: Body) -> tuple[str, str] | None:
    owners = body["metadata"].get("ownerReferences") or []
    return next(((one["kind"], one["name"]) for one in owners if one.get("controller")), None)


def _is_over(job: Body) -> bool:
    conditions = job.get("status", {}).get("conditions") or []
    return any(one["type"] in ("Complete", "Failed") and one["status"] == "True" for one in conditions)


def _name(body: Body) -> str:
    return str(body["metadata"]["name"])


def _spec(body: Body) -> Mapping[str, Any]:
    return body.get("spec") or {}


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(parts)
