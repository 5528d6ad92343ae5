"""The claim of the volume that a run mounts."""

from __future__ import annotations

from cluster.apply import reconcile as apply_reconcile
from cluster.client.kube import Kube
from cluster.manifests import run as manifests
from cluster.manifests.run_spec import ClaimSpec
from cluster.models import AppliedObject
from portal.core.due import owner_label
from workloads.models import Volume

Result = AppliedObject.Result


def ensure_claim(volume: Volume, namespace: str, *, cluster_id: int, kube: Kube) -> bool:
    """Creates the claim unless it was created, and returns whether it is there. It belongs to its namespace, not to its
    first workload, so its owner label names the volume. One query if it is there.
    """
    owner = owner_label(volume)
    if AppliedObject.objects.filter(owner=owner, result=Result.APPLIED).exists():
        return True
    spec = ClaimSpec(owner, namespace, volume.name, volume.size_gib, volume.storage)
    claim = manifests.volume_claim(spec)
    made = apply_reconcile.create_once(kube=kube, cluster_id=cluster_id, owner=owner, manifest=claim)
    return made.result == Result.APPLIED
