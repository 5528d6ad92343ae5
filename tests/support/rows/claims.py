"""Claims of volumes, and the storage behind them, as rows of the mirror."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from cluster.models import AppliedObject, MirrorObject
from tenants.models import Namespace
from tests.support.rows import mirrored
from workloads.models import Volume

ZONE = "topology.kubernetes.io/zone"


def claim(name: str, namespace: str, gib: int) -> dict[str, Any]:
    return mirrored.with_metadata(
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"resources": {"requests": {"storage": f"{gib}Gi"}}, "accessModes": ["ReadWriteOnce"]},
        }
    )


def claimed(namespace: Namespace, name: str) -> Volume:
    """A volume whose claim the API server accepted a minute ago. The mirror does not show it."""
    found, _is_new = Volume.objects.get_or_create(
        namespace=namespace, name=name, defaults={"size_gib": 10, "due_at": None}
    )
    AppliedObject.objects.create(
        cluster=namespace.cluster, owner=f"workloads.volume.{found.pk}", kind="PersistentVolumeClaim",
        namespace=namespace.name, name=name, uid=f"claim-{name}", result="applied", manifest_hash="x",
        sent_at=timezone.now() - timedelta(minutes=1),
    )  # fmt: skip
    return found


def bound(namespace: Namespace, name: str, *, key: str = ZONE, value: str = "b", phase: str = "Bound") -> MirrorObject:
    """The mirror shows the claim, and its storage that nodes with this label can mount."""
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    _mirror(namespace, "PersistentVolume", f"pv-{name}", {"nodes": [term]})
    record = {
        "phase": phase, "storage_class": "fast", "node": "", "volume": f"pv-{name}", "conditions": [],
        "asked_bytes": 2**30, "capacity_bytes": 2**30, "access_modes": ["ReadWriteOnce"],
    }  # fmt: skip
    return _mirror(namespace, "PersistentVolumeClaim", name, record, namespace=namespace.name)


def _mirror(of: Namespace, kind: str, name: str, record: dict[str, Any], namespace: str = "") -> MirrorObject:
    return MirrorObject.objects.create(
        cluster_id=of.cluster_id, kind=kind, namespace=namespace, name=name, uid=f"{kind}-{name}"[:36],
        resource_version=1, created_at=timezone.now(), record=record,
    )  # fmt: skip
