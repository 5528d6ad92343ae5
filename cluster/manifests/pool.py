"""The cluster-wide objects of the catalog: a ResourceFlavor per class, and the Cohort that all queues borrow from."""

from __future__ import annotations

from cluster.manifests.metadata import CLASS_LABEL, KUEUE_API, Manifest, object_meta
from cluster.manifests.namespace import resource_groups
from cluster.manifests.specs import CohortSpec, FlavorSpec

# No pod tolerates it. A flavor's taints may change, unlike its labels, its tolerations and its topology.
HELD_TAINT = "gpu-portal/held"


def resource_flavor(spec: FlavorSpec) -> Manifest:
    """The taint is on the flavor only, not on nodes: it decides which quota a pod is charged to.

    Labels cannot: Kueue takes the first flavor whose labels do not contradict the pod.
    """
    return {
        "apiVersion": KUEUE_API,
        "kind": "ResourceFlavor",
        "metadata": object_meta(spec.name, owner=spec.owner),
        "spec": {
            **({"nodeLabels": dict(spec.node_labels)} if spec.node_labels else {}),
            "nodeTaints": [
                {"key": CLASS_LABEL, "value": spec.slug, "effect": "NoSchedule"},
                *([{"key": HELD_TAINT, "value": "true", "effect": "NoSchedule"}] if spec.is_held else []),
            ],
            **({"tolerations": [dict(toleration) for toleration in spec.tolerations]} if spec.tolerations else {}),
            **({"topologyName": spec.topology} if spec.topology else {}),
        },
    }


def cohort(spec: CohortSpec) -> Manifest:
    return {
        "apiVersion": KUEUE_API,
        "kind": "Cohort",
        "metadata": object_meta(spec.name, owner=spec.owner),
        "spec": {"resourceGroups": resource_groups(spec.cells)},
    }
