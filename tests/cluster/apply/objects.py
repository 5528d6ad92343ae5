"""Manifests of one owner that is no row."""

from __future__ import annotations

from typing import Any

from cluster.manifests.metadata import OWNER_LABEL

OWNER = "tenants.namespace.77"


def meta(name: str, *, namespace: str = "", owner: str = OWNER) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": name,
        "labels": {"app.kubernetes.io/managed-by": "gpu-portal", OWNER_LABEL: owner},
    }
    return {**found, "namespace": namespace} if namespace else found


def namespace(name: str) -> dict[str, Any]:
    metadata = meta(name)
    metadata["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def quota(namespace: str, *, pods: int) -> dict[str, Any]:
    spec = {"hard": {"pods": str(pods)}}
    metadata = meta("gpu-portal", namespace=namespace)
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


def limits(namespace: str, *, least: str) -> dict[str, Any]:
    """Refused if the least is above 2."""
    spec = {"limits": [{"type": "Container", "min": {"cpu": least}, "max": {"cpu": "2"}}]}
    metadata = meta("gpu-portal", namespace=namespace)
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": spec}


def secret(namespace: str, *, owner: str = OWNER) -> dict[str, Any]:
    metadata = meta("key", namespace=namespace, owner=owner)
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"a": "b"}}
