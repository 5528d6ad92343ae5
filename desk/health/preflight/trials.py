"""Objects like those that the portal would create, to be sent as dry runs. Pure."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from cluster.manifests import names, namespace, pool, run
from cluster.manifests.metadata import Manifest
from cluster.manifests.run_spec import NOTEBOOK, ClaimSpec, RunSpec
from cluster.manifests.specs import CohortSpec, FlavorSpec, NamespaceSpec, QuotaCell, QuotaSpec

NAME = "gpu-portal-preflight"
GPU = "nvidia.com/gpu"


def trial_objects(existing_namespace: str, *, has_priority_class: bool) -> Iterator[Manifest]:
    """A team's namespace, and what would be in it, in a namespace that exists: the API server tries nothing in one that
    does not. A pod cannot name what only an installation creates, so these fields are left out.
    """
    cell = QuotaCell(GPU, NAME, 1, 0)
    quota = QuotaSpec(devices={f"requests.{GPU}": 1}, cpu=1, memory_gib=1)
    team = NamespaceSpec(name=NAME, owner=NAME, group=NAME, cohort=NAME, quota=quota, cells=(cell,), is_held=False)
    yield namespace.namespace(team)
    yield pool.resource_flavor(
        FlavorSpec(NAME, owner=NAME, slug=NAME, node_labels={GPU: NAME}, tolerations=(), topology=names.TOPOLOGY)
    )
    yield pool.cohort(CohortSpec(NAME, owner=NAME, cells=(QuotaCell(GPU, NAME, 1),)))
    yield namespace.cluster_queue(team, (cell,))
    for manifest in (
        namespace.limit_range(team),
        namespace.resource_quota(team),
        namespace.network_ingress(team),
        namespace.network_egress(team),
        namespace.local_queue(team),
        run.volume_claim(ClaimSpec(owner=NAME, namespace=NAME, name=NAME, size_gib=1)),
    ):
        yield _moved(manifest, existing_namespace)
    job = run.job(_notebook(existing_namespace))
    yield job
    template = copy.deepcopy(job["spec"]["template"])
    spec = template["spec"] | {"serviceAccountName": "default"}
    if not has_priority_class:
        del spec["priorityClassName"]
    metadata = template["metadata"] | {"name": NAME, "namespace": existing_namespace}
    yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _moved(manifest: Manifest, to: str) -> Manifest:
    """Under a name that is free there."""
    return {**manifest, "metadata": {**manifest["metadata"], "name": NAME, "namespace": to}}


def _notebook(in_namespace: str) -> RunSpec:
    return RunSpec(
        namespace=in_namespace,
        gpu_class=NAME,
        units=1,
        interface="device-plugin",
        resource=GPU,
        device_class="",
        device_selector="",
        node_labels={},
        tolerations=(),
        image="registry.example.org/notebook:1.0",
        cpu=1,
        memory_gib=1,
        owner=NAME,
        workload=names.dns_label(NAME),
        number=1,
        kind=NOTEBOOK,
        weight="1",
        price_per_unit_hour="0",
        command=(),
        shared_memory_gib=1,
        claim="",
    )
