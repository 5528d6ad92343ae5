"""Labels, annotations and other metadata that every manifest of the portal has. Pure."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]

KUEUE_API = "kueue.x-k8s.io/v1beta2"
MANAGED_LABEL = "app.kubernetes.io/managed-by"
MANAGED_BY = "gpu-portal"
OWNER_LABEL = "gpu-portal/owner"
# Owner of the objects of device trials (catalog/trials). No row: a portal that is installed again finds them.
TRIALS_OWNER = "gpu-portal.trials"
CLASS_LABEL = "gpu-portal/class"
RUN_LABEL = "gpu-portal/run"


def object_meta(name: str, *, owner: str, namespace: str = "", labels: dict[str, str] | None = None) -> dict[str, Any]:
    """Metadata with the two labels of every object; `owner` is `<app>.<model>.<pk>`, the only link back to a row."""
    return {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "labels": {MANAGED_LABEL: MANAGED_BY, OWNER_LABEL: owner, **(labels or {})},
    }
