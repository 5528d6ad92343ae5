"""ResourceClaims as rows of the mirror."""

from __future__ import annotations

from typing import Any

from tests.support.rows import mirrored


def claim(name: str, namespace: str, gib: int) -> dict[str, Any]:
    return mirrored.with_metadata(
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"resources": {"requests": {"storage": f"{gib}Gi"}}, "accessModes": ["ReadWriteOnce"]},
        }
    )
