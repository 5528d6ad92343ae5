"""A namespace that existed before the portal: how it is taken over, and given back as it was. Pure.

Whoever administers the cluster consents with the label ADOPT_LABEL, whose value names the team; the worker cannot set
it. What the labels were is kept on the namespace itself, where the API server checks it against the labels that it had
(deploy/base/fence-worker.yaml), so that it outlives the portal's database and cannot be made up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster.manifests.metadata import Manifest

ADOPT_LABEL = "gpu-portal/adopt"
# Lines `key=value` of all labels before the adoption.
BEFORE_ANNOTATION = "gpu-portal/labels-before"
# Writes the annotation, which is not part of the manifest: an apply would remove it.
ADOPTION_MANAGER = "gpu-portal-adoption"
# Labels with a meaning for the cluster's policies: the portal removes those that are not its own, as drift.
_REMOVED = ("pod-security.kubernetes.io/", "kueue.x-k8s.io/")
Body = Mapping[str, Any]


def labels_of(body: Body) -> dict[str, str]:
    return body["metadata"].get("labels") or {}


def is_adopted(body: Body) -> bool:
    return BEFORE_ANNOTATION in (body["metadata"].get("annotations") or {})


def label_changes(body: Body, manifest: Manifest) -> dict[str, str | None]:
    """Labels of others that get another value, or None: are removed."""
    ours, theirs = manifest["metadata"]["labels"], labels_of(body)
    changed = {key: value for key, value in ours.items() if theirs.get(key, value) != value}
    return changed | {key: None for key in theirs if key.startswith(_REMOVED) and key not in ours}


def adoption_patch(body: Body, manifest: Manifest) -> dict[str, Any]:
    """The merge patch that gives a namespace the portal's labels. Holds only for this version of the namespace."""
    before = "\n".join(f"{key}={value}" for key, value in sorted(labels_of(body).items()))
    return _patch(body, labels=manifest["metadata"]["labels"], before=before)


def release_patch(body: Body, manifest: Manifest) -> dict[str, Any]:
    """The merge patch that takes the portal's labels off an adopted namespace and puts back what they had replaced.
    Other labels stay as they are now. The consent goes too: it was for one adoption.
    """
    lines = body["metadata"]["annotations"][BEFORE_ANNOTATION].split("\n")
    before = dict(line.split("=", 1) for line in lines if line)
    ours = {key: before.get(key) for key in manifest["metadata"]["labels"]}
    removed = {key: value for key, value in before.items() if key.startswith(_REMOVED)}
    return _patch(body, labels={**removed, **ours, ADOPT_LABEL: None}, before=None)


def _patch(body: Body, *, labels: Mapping[str, str | None], before: str | None) -> dict[str, Any]:
    metadata = body["metadata"]
    return {
        "metadata": {
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
            "labels": dict(labels),
            "annotations": {BEFORE_ANNOTATION: before},
        }
    }
