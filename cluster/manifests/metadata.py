"""Labels, annotations and other metadata that every manifest of the portal has. Pure."""

from __future__ import annotations

from collections.abc import Mapping
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
# Which row an object was made for, where names and primary keys may be used again after a restore.
IDENTITY_LABEL = "gpu-portal/identity"


def object_meta(name: str, *, owner: str, namespace: str = "", labels: dict[str, str] | None = None) -> dict[str, Any]:
    """Metadata with the two labels of every object; `owner` is `<app>.<model>.<pk>`, the only link back to a row."""
    return {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "labels": {MANAGED_LABEL: MANAGED_BY, OWNER_LABEL: owner, **(labels or {})},
    }


def names_other_row(labels: Mapping[str, str], identity: str) -> bool:
    """Whether the object was made for another row than the one of this identity, although owner and name may be equal.
    An object of a release before the label names none.
    """
    return labels.get(IDENTITY_LABEL, "") not in ("", identity)
