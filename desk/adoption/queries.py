"""Who uses devices beside the portal: namespaces with pods that it did not create."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from cluster.models import Cluster, MirrorPod


@dataclass(frozen=True)
class ForeignNamespace:
    """A namespace in which pods that the portal did not create request devices. `devices`: resource and amount."""

    name: str
    pods: int
    devices: list[tuple[str, int]]


def foreign_namespaces(cluster: Cluster) -> list[ForeignNamespace]:
    """One query. Extended resources have a domain; those of the node itself have none."""
    pods: Counter[str] = Counter()
    devices: dict[str, Counter[str]] = {}
    rows = MirrorPod.objects.filter(cluster_id=cluster.pk, owner="").exclude(phase__in=("Succeeded", "Failed"))
    for namespace, requests in rows.values_list("namespace", "record__requests"):
        held = {resource: amount for resource, amount in (requests or {}).items() if "/" in resource and amount}
        if held:
            pods[namespace] += 1
            devices.setdefault(namespace, Counter()).update(held)
    return [ForeignNamespace(name, pods[name], sorted(devices[name].items())) for name in sorted(pods)]
