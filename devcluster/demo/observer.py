"""What an administrator sees of one team's namespace and queue in the cluster, read without the portal."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import TypeVar

from devcluster.client.kube import Api, ApiError
from devcluster.client.types import Json

Answer = TypeVar("Answer")
KUEUE = "kueue.x-k8s.io/v1beta2"
WITHIN_S = 60.0


class ClusterObserver:
    def __init__(self, admin: Api, namespace: str) -> None:
        self.admin = admin
        self.namespace = namespace

    def until(self, what: str, true: Callable[[], Answer | None], *, within_s: float = WITHIN_S) -> Answer:
        """Calls `true` until it returns a true value, and returns that. Raises AssertionError with `what` after
        `within_s`. An object that does not exist (404) counts as not yet true.
        """
        deadline = time.monotonic() + within_s
        while True:
            try:
                if answer := true():
                    return answer
            except ApiError as error:
                if error.status != 404:
                    raise
            assert time.monotonic() < deadline, f"{what} was not there within {within_s:.0f} s"
            time.sleep(0.1)

    def of(self, resource: str, workload: str) -> list[Json]:
        """Returns the objects of `resource` (Jobs or pods) of a workload: those with the portal's label whose names
        begin with its name.
        """
        found = self.admin.list(resource, namespace=self.namespace, labels="gpu-portal/workload")
        return [obj for obj in found if obj["metadata"]["name"].startswith(f"{workload}-")]

    def job(self, workload: str) -> Json | None:
        return next(iter(self.of("batch/v1/jobs", workload)), None)

    def ready_pod(self, workload: str) -> Json | None:
        return next((pod for pod in self.of("v1/pods", workload) if _is_true(pod, "Ready")), None)

    def pod_name(self, workload: str) -> str:
        return str(self.of("v1/pods", workload)[0]["metadata"]["name"])

    def admitted(self, job: Json) -> Json | None:
        """Returns the Kueue Workload of a Job, once it is admitted."""
        for workload in self.admin.list(f"{KUEUE}/workloads", namespace=self.namespace):
            owners = [owner["uid"] for owner in workload["metadata"].get("ownerReferences", [])]
            if job["metadata"]["uid"] in owners and _is_true(workload, "Admitted"):
                return workload
        return None

    def notebook_token(self, workload: str) -> str:
        job = self.job(workload)
        assert job is not None, f"{workload} has no Job"
        secret = self.admin.get("v1/secrets", job["metadata"]["name"], namespace=self.namespace)
        return base64.b64decode(secret["data"]["token"]).decode()

    def nominal(self, resource: str) -> int:
        """Returns the nominalQuota of the team's ClusterQueue, in units; 0 if there is no ClusterQueue."""
        queue = self.admin.find(f"{KUEUE}/clusterqueues", self.namespace) or {"spec": {}}
        return sum(
            int(one["nominalQuota"])
            for group in queue["spec"].get("resourceGroups", [])
            for flavor in group["flavors"]
            for one in flavor["resources"]
            if one["name"] == resource
        )

    def used(self, resource: str) -> int:
        """Returns the units that Kueue counts as used, including borrowed ones."""
        queue = self.admin.get(f"{KUEUE}/clusterqueues", self.namespace)
        usage = queue.get("status", {}).get("flavorsUsage", [])
        return sum(int(one["total"]) for flavor in usage for one in flavor["resources"] if one["name"] == resource)

    def condition(self, resource: str, name: str, kind: str) -> Json | None:
        return _condition(self.admin.find(resource, name) or {}, kind)


def _is_true(obj: Json, kind: str) -> bool:
    return _condition(obj, kind) is not None


def _condition(obj: Json, kind: str) -> Json | None:
    conditions = obj.get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == kind and one["status"] == "True"), None)
