"""Computes what applying manifests would change, by a dry run on the API server, as readable lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cluster.apply.types import object_key
from cluster.client.errors import ClusterRefused, Conflict, NotFound
from cluster.client.kube import Kube
from cluster.client.types import ApiObject
from cluster.manifests.metadata import OWNER_LABEL, Manifest
from cluster.models import AppliedObject, Cluster
from portal.core.due import Deadline

ABSENT = "absent"


@dataclass(frozen=True)
class PlannedChange:
    """One object of a plan. `difference`: lines "- path: before" and "+ path: after" of what would change."""

    kind: str
    namespace: str
    name: str
    change: str  # create | change | same | delete
    difference: tuple[str, ...]
    result: str  # accepted | refused
    code: str = ""
    text: str = ""

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "difference": list(self.difference)}


def dry_run(
    *, kube: Kube, cluster: Cluster, owner: str, manifests: Sequence[Manifest], deadline: Deadline
) -> list[PlannedChange]:
    """Sends one or two requests per object; nothing is changed. Raises ClusterUnavailable."""
    planned = []
    for manifest in manifests:
        deadline.check()
        planned.append(_try(kube, owner, manifest))
    wanted = {object_key(manifest) for manifest in manifests}
    for row in AppliedObject.objects.filter(cluster=cluster, owner=owner):
        key = (row.kind, row.namespace, row.name)
        if key not in wanted:
            planned.append(PlannedChange(*key, change="delete", difference=(), result="accepted"))
    return planned


def diff_lines(before: dict[str, Any] | None, after: dict[str, Any]) -> tuple[str, ...]:
    """Returns lines for every leaf that differs, without what the API server writes (status, most of metadata)."""
    old = _leaves(_ours(before)) if before is not None else {}
    new = _leaves(_ours(after))
    lines = []
    for path in sorted(old.keys() | new.keys()):
        if old.get(path, ABSENT) == new.get(path, ABSENT):
            continue
        if path in old:
            lines.append(f"- {path}: {old[path]}")
        if path in new:
            lines.append(f"+ {path}: {new[path]}")
    return tuple(lines)


def _try(kube: Kube, owner: str, manifest: Manifest) -> PlannedChange:
    kind, namespace, name = key = object_key(manifest)
    try:
        live: ApiObject | None = kube.get(kind, name=name, namespace=namespace)
    except NotFound:
        live = None
    change = "create" if live is None else "change"
    if live is not None and live.labels.get(OWNER_LABEL) != owner:
        text = f"A {kind} named {name} already exists that the portal did not create."
        return PlannedChange(*key, change=change, difference=(), result="refused", code="foreign", text=text)
    try:
        if live is None:
            after = kube.create(manifest, dry_run=True)
        else:
            after = kube.apply(manifest, uid=live.uid, dry_run=True)
    except (ClusterRefused, Conflict) as refused:
        lines = diff_lines(live.body if live else None, manifest)
        return PlannedChange(
            *key, change=change, difference=lines, result="refused", code=refused.reason, text=refused.text
        )
    lines = diff_lines(live.body if live else None, after.body)
    change = change if lines or live is None else "same"
    return PlannedChange(*key, change=change, difference=lines, result="accepted", text=" ".join(after.warnings))


def _ours(body: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in body.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    labels = {
        key: value
        for key, value in (body.get("metadata", {}).get("labels") or {}).items()
        if key != "kubernetes.io/metadata.name"
    }
    return {**kept, "labels": labels}


def _leaves(value: Any, path: str = "") -> dict[str, str]:
    if isinstance(value, dict):
        found: dict[str, str] = {}
        for key, inner in value.items():
            found |= _leaves(inner, f"{path}.{key}" if path else str(key))
        return found
    if isinstance(value, list):
        found = {}
        for index, inner in enumerate(value):
            # Named items keep their name in the path, so that an inserted one does not shift all others.
            name = inner.get("name") if isinstance(inner, dict) else None
            found |= _leaves(inner, f"{path}[{name if name is not None else index}]")
        return found
    return {path: str(value)}
