"""Compares rows with objects, as an independent client sees them: missing ones, leftovers, and who holds units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from catalog.classes.capacity.queries import units_used
from cluster.manifests.names import run_name
from cluster.models import AppliedObject
from devcluster.client.kube import Api
from tenants.models import Namespace
from workloads.models import Run, Volume, Workload

OWNER = "gpu-portal/owner"
# Every kind that the portal labels in a namespace.
RESOURCES = (
    "v1/pods",
    "v1/secrets",
    "v1/persistentvolumeclaims",
    "v1/resourcequotas",
    "v1/limitranges",
    "v1/serviceaccounts",
    "batch/v1/jobs",
    "networking.k8s.io/v1/networkpolicies",
    "rbac.authorization.k8s.io/v1/rolebindings",
    "resource.k8s.io/v1/resourceclaimtemplates",
    "kueue.x-k8s.io/v1beta2/localqueues",
)
KINDS = {
    "Job": "jobs",
    "Secret": "secrets",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
}
ENDED_BY_ITSELF = (Run.Outcome.FAILED, Run.Outcome.SUCCEEDED)
# An unknown value must not count as 0.
UNKNOWN = -1
Found = set[tuple[str, str, str]]


@dataclass(frozen=True)
class Accounts:
    """The accounts of one namespace; objects as (resource, name, owner label)."""

    admin: Api
    namespace: Namespace

    def differences(self) -> list[str]:
        """Each object has a live row, each live run has its objects, and their identities are recorded."""
        found = self.objects()
        wanted = self.wanted()
        jobs = {name for resource, name, _ in found if resource == "jobs"}
        of_jobs = {one for one in found if one[0] in ("secrets", "resourceclaimtemplates", "pods")}
        known = {(KINDS[row.kind], row.name, row.owner) for row in self._sent()}
        return [
            *(f"without a live row: {one}" for one in sorted(found) if one[2] not in self._live()),
            *(f"missing: {one}" for one in sorted(wanted - found)),
            *(f"left over: {one}" for one in sorted({one for one in found if one[0] == "jobs"} - self.allowed())),
            *(f"without its job: {one}" for one in sorted(of_jobs) if self._job_of(one) not in jobs),
            *(f"written down and not there: {one}" for one in sorted(known - found)),
            *(f"not written down: {one}" for one in sorted(found - known) if one[0] == "jobs"),
        ]

    def objects(self) -> Found:
        found = set()
        for resource in RESOURCES:
            for one in self.admin.list(resource, namespace=self.namespace.name, labels=OWNER):
                metadata = one["metadata"]
                found.add((resource.rpartition("/")[2], metadata["name"], metadata["labels"][OWNER]))
        return found

    def wanted(self) -> Found:
        """The objects of every run without a stop request."""
        found: Found = set()
        for run in self._runs().filter(ended_at=None, stop_requested_at=None):
            name, owner = run_name(run.workload.name, run.number), f"workloads.workload.{run.workload_id}"
            found.add(("jobs", name, owner))
            if run.workload.kind == "notebook":
                found.add(("secrets", name, owner))
            if run.workload.volume is not None:
                volume = run.workload.volume
                found.add(("persistentvolumeclaims", volume.name, f"workloads.volume.{volume.pk}"))
        return found

    def allowed(self) -> Found:
        """Jobs of active runs, and for an hour those of runs that ended by themselves, for their logs."""
        return {
            ("jobs", run_name(run.workload.name, run.number), f"workloads.workload.{run.workload_id}")
            for run in self._runs()
            if run.ended_at is None or run.outcome in ENDED_BY_ITSELF
        }

    def holders(self) -> dict[str, int]:
        """What still counts units as used: pods, ResourceQuota and ClusterQueue in the API, and the portal's figure."""
        name, resource = self.namespace.name, "requests.nvidia.com/gpu"
        pods = self.admin.list("v1/pods", namespace=name)
        quota = self.admin.get("v1/resourcequotas", "gpu-portal", namespace=name)
        queue = self.admin.get("kueue.x-k8s.io/v1beta2/clusterqueues", name)
        flavors = queue.get("status", {}).get("flavorsUsage", [])
        ours = units_used(self.namespace.cluster, self.namespace.cluster.classes.all(), namespace=name)
        counted = {
            "pods": sum(pod["status"]["phase"] not in ("Succeeded", "Failed") for pod in pods),
            "ResourceQuota": int(quota["status"].get("used", {}).get(resource, 0)),
            "ClusterQueue": sum(int(one["total"]) for flavor in flavors for one in flavor["resources"]),
            "portal": sum(ours.values()) if ours else UNKNOWN,
        }
        return {who: units for who, units in counted.items() if units}

    def _runs(self) -> Any:
        runs = Run.objects.filter(workload__namespace=self.namespace, workload__deleted_at=None)
        return runs.select_related("workload__volume")

    def _live(self) -> set[str]:
        workloads = Workload.objects.filter(namespace=self.namespace, deleted_at=None)
        volumes = Volume.objects.filter(namespace=self.namespace, gone_at=None)
        return {
            f"tenants.namespace.{self.namespace.pk}",
            *(f"workloads.workload.{pk}" for pk in workloads.values_list("pk", flat=True)),
            *(f"workloads.volume.{pk}" for pk in volumes.values_list("pk", flat=True)),
        }

    def _sent(self) -> list[AppliedObject]:
        rows = AppliedObject.objects.filter(namespace=self.namespace.name, kind__in=KINDS)
        return list(rows.filter(owner__startswith="workloads."))

    def _job_of(self, one: tuple[str, str, str]) -> str:
        """A pod has its Job's name and five more characters; other objects have the Job's name."""
        resource, name, _ = one
        return name.rpartition("-")[0] if resource == "pods" else name
