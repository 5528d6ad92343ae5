"""A closed team while its volumes are kept: the namespace, and a ResourceQuota that lets nothing run."""

from __future__ import annotations

from cluster.manifests.metadata import Manifest
from cluster.manifests.namespace import namespace, resource_quota
from cluster.manifests.specs import NamespaceSpec


def retained_objects(spec: NamespaceSpec) -> list[Manifest]:
    """Existing claims stay, whatever their number; a quota below current use only refuses new ones."""
    quota = resource_quota(spec)
    nothing = dict.fromkeys(quota["spec"]["hard"], "0")
    return [namespace(spec), {**quota, "spec": {"hard": nothing}}]
