"""The worker refuses to run if the cluster would let it write outside the portal's namespaces.

RBAC cannot limit writes to namespaces with our label; the admission policy in deploy/ does. It is tested here once at
start: a dry run of a Secret in kube-system must be refused. A dry run is a write, so a worker that starts while the
cluster is observed only, or is not the one of the rows, tests it before its first write; so does one whose cluster is
replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from cluster.client.errors import ClusterRefused, ClusterUnavailable
from cluster.client.types import ApiObject

FORBIDDEN_SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "gpu-portal-fence-check", "namespace": "kube-system"},
    "type": "Opaque",
}


class FenceMissing(Exception):
    """The cluster accepted a request that it must refuse."""


class Creator(Protocol):
    def create(self, manifest: dict[str, Any], *, dry_run: bool = False) -> ApiObject: ...


def check_fence(kube: Creator) -> None:
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


class Fence:
    """What this process knows; a worker's children inherit it. `is_required`: only in workers, since only their rights
    are confined. `found_in`: the uid of the cluster in which the fence was found, "" if none.
    """

    is_required = False
    found_in = ""


_fence = Fence()


def postpone_fence() -> None:
    _fence.is_required, _fence.found_in = True, ""


def record_fence(uid: str) -> None:
    """`uid`: of the cluster in which it was found at start."""
    _fence.is_required, _fence.found_in = True, uid


def check_postponed_fence(reached: Callable[[], str], client: Callable[[], Creator]) -> None:
    """Checks the fence unless it was found in the cluster that is `reached`. Raises ClusterUnavailable while there is
    none: rows wait for it.
    """
    uid = reached()
    if not _fence.is_required or (uid and _fence.found_in == uid):
        return
    try:
        check_fence(client())
    except FenceMissing as missing:
        raise ClusterUnavailable(str(missing)) from missing
    # Another one may be reached meanwhile: which of them has the fence is not known then.
    _fence.found_in = uid if reached() == uid else ""
