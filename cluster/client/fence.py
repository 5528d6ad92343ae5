"""The worker refuses to run if the cluster would let it write outside the portal's namespaces.

RBAC cannot limit writes to namespaces with our label; the admission policy in deploy/ does. It is tested here once at
start: a dry run of a Secret in kube-system must be refused.
"""

from __future__ import annotations

from cluster.client.errors import ClusterRefused
from cluster.client.kube import Kube

FORBIDDEN_SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "gpu-portal-fence-check", "namespace": "kube-system"},
    "type": "Opaque",
}


class FenceMissing(Exception):
    """The cluster accepted a request that it must refuse."""


def check_fence(kube: Kube) -> None:
    """Raises FenceMissing, or ClusterUnavailable when the API server does not answer."""
    try:
        kube.create(FORBIDDEN_SECRET, dry_run=True)
    except ClusterRefused as refused:
        # Any other refusal (missing rights, a webhook of the site) says nothing about the fence.
        if "gpu-portal fence" in refused.text:
            return
        raise FenceMissing(
            f"The worker's write into kube-system was rejected, but not by the policy of deploy/base: {refused.text}"
        ) from refused
    raise FenceMissing(
        "The cluster allows this worker to write a Secret into kube-system, so its admission policy is missing. "
        "Apply deploy/base (ValidatingAdmissionPolicy gpu-portal-worker and its binding) and restart the worker."
    )
