"""The objects of a device trial: a bare Workload for one device, in a queue that has no quota at all. Pure.

No controller makes pods of a Workload without a Job, and its queue covers no device: so it can take nothing from
anybody, and Kueue says under which name it counts the device.
"""

from __future__ import annotations

from cluster.manifests import names
from cluster.manifests.metadata import KUEUE_API, TRIALS_OWNER, Manifest, object_meta
from cluster.manifests.namespace import namespace as team_namespace
from cluster.manifests.run import CLAIM_NAME
from cluster.manifests.site import SiteProfile
from cluster.manifests.specs import NamespaceSpec, QuotaSpec

NAMESPACE = "gpu-portal-trials"


def surroundings(site: SiteProfile) -> list[Manifest]:
    """The namespace and its queue: permanent, and empty between trials."""
    spec = NamespaceSpec(
        name=NAMESPACE,
        owner=TRIALS_OWNER,
        group="",
        cohort="",
        quota=QuotaSpec({}, cpu=0, memory_gib=0),
        cells=None,
        is_held=False,
        site=site,
    )
    # Without a cohort a quota has no borrowing limit.
    nothing = {"name": names.PLAIN_RESOURCE, "nominalQuota": "0"}
    queue = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
        "resourceGroups": [
            {
                "coveredResources": [names.PLAIN_RESOURCE],
                "flavors": [{"name": names.PLAIN_FLAVOR, "resources": [nothing]}],
            }
        ],
    }
    return [
        team_namespace(spec),
        {
            "apiVersion": KUEUE_API,
            "kind": "ClusterQueue",
            "metadata": object_meta(NAMESPACE, owner=TRIALS_OWNER),
            "spec": queue,
        },
        {
            "apiVersion": KUEUE_API,
            "kind": "LocalQueue",
            "metadata": object_meta(names.LOCAL_QUEUE, owner=TRIALS_OWNER, namespace=NAMESPACE),
            "spec": {"clusterQueue": NAMESPACE},
        },
    ]


def claim_template(name: str, *, device_class: str, selector: str) -> Manifest:
    selectors = {"selectors": [{"cel": {"expression": selector}}]} if selector else {}
    request = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": 1, **selectors}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": object_meta(name, owner=TRIALS_OWNER, namespace=NAMESPACE),
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}},
    }


def workload(name: str) -> Manifest:
    """`name` is also that of its claim template."""
    container = {"name": "none", "image": "none", "resources": {"claims": [{"name": CLAIM_NAME}]}}
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "resourceClaims": [{"name": CLAIM_NAME, "resourceClaimTemplateName": name}],
    }
    return {
        "apiVersion": KUEUE_API,
        "kind": "Workload",
        "metadata": object_meta(name, owner=TRIALS_OWNER, namespace=NAMESPACE),
        "spec": {
            "queueName": names.LOCAL_QUEUE,
            "podSets": [{"name": "main", "count": 1, "template": {"spec": pod}}],
        },
    }
