"""Computes what applying manifests would change, by a dry run on the API server, as readable lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cluster.apply.difference import diff_lines
from cluster.apply.types import object_key
from cluster.client.errors import ClusterRefused, Conflict, NotFound
from cluster.client.kube import Kube
from cluster.client.types import ApiObject
from cluster.manifests.metadata import OWNER_LABEL, Manifest
from cluster.models import AppliedObject, Cluster
from portal.core.due import Deadline


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
