"""The spec of a run, frozen when it starts: all values from which its objects are created."""

from __future__ import annotations

import secrets
from dataclasses import replace

from catalog.classes import queries as class_queries
from catalog.classes import topology
from catalog.classes.capacity import weights
from catalog.images import image_references
from cluster.manifests import run as manifests
from cluster.manifests.metadata import Manifest
from cluster.manifests.node_affinity import gpu_node_labels
from cluster.manifests.run_spec import DEFAULT_PRIORITY, HOME, JOB, NOTEBOOK, RunSpec
from cluster.models import Cluster
from cluster.reads.gpu_nodes import unlabelled_gpu_nodes
from cluster.reads.volume_place import EVERYWHERE
from portal.core.due import owner_label
from workloads.launch import options
from workloads.launch.options import Options, repository_directory
from workloads.models import Workload
from workloads.storage.claim_states import claim_states


def frozen_spec(workload: Workload, number: int) -> RunSpec:
    """Returns all values from which the run's objects are created, as they are now. No query, or at most two for the
    levels of a topology.
    """
    gpu_class, said = workload.gpu_class, Options.from_json(workload.options)
    pod = class_queries.pod_spec(
        gpu_class, units=workload.units, image=workload.image, namespace=workload.namespace.name
    )
    # The class may have shrunk since the declaration: the run never gets more than the class allows now.
    cpu, memory_gib = min(said.cpu or pod.cpu, pod.cpu), min(said.memory_gib or pod.memory_gib, pod.memory_gib)
    pod = replace(pod, cpu=cpu, memory_gib=memory_gib, gpu_memory_gib=said.gpu_memory_gib or 0)
    return RunSpec(
        **vars(pod),
        owner=owner_label(workload),
        workload=workload.name,
        number=number,
        kind=workload.kind,
        weight=weights.exact_digits(gpu_class.weight, gpu_class.replicas),
        price_per_unit_hour=str(gpu_class.price_per_unit_hour),
        command=tuple(workload.command),
        # Counts against the memory limit. PyTorch data loaders need more than the runtime's default of 64 MiB.
        shared_memory_gib=min(said.shared_memory_gib or max(1, pod.memory_gib // 4), pod.memory_gib),
        claim=workload.volume.name if workload.volume else "",
        mount_path=said.mount_path or HOME,
        env=said.env,
        secrets=said.secrets,
        registry=image_references.parse_reference(workload.image).registry if workload.own_image else "",
        repository=said.repository,
        reference=said.reference,
        clone_into=repository_directory(said.repository),
        run_minutes=options.run_minutes(said.run_hours, gpu_class.run_hours_limit),
        idle_stop_minutes=gpu_class.idle_stop_minutes if workload.kind == NOTEBOOK else None,
        workers=workload.workers,
        retries=said.retries or 0,
        priority=said.priority or DEFAULT_PRIORITY[workload.kind],
        script=said.script.replace("\r\n", "\n"),
        checkpoints=said.checkpoints,
        topology_level=said.topology_level,
        topology_required=said.topology_required,
        topology_levels=_levels(workload, said),
    )


def _levels(workload: Workload, said: Options) -> tuple[str, ...]:
    """Always with the requested one, also if the class has it no longer."""
    level = said.topology_level
    known = topology.levels_of(workload.gpu_class) if level else ()
    return known if known is not None and level in known else (level,) if level else ()


def new_identity() -> str:
    """Of a run: recorded with it and a label of its objects."""
    return secrets.token_hex(8)


def needs_secret(spec: RunSpec) -> bool:
    return spec.kind != JOB or bool(spec.secrets)


def job_manifest(cluster: Cluster, spec: RunSpec) -> Manifest:
    """The run's Job by the site profile of now and the nodes on which its volume can be mounted: they are not frozen,
    since the cluster changes with them. One query for a run without GPUs, one with a volume.
    """
    site = cluster.site_profile
    hosts = unlabelled_gpu_nodes(cluster.pk, gpu_node_labels(site)) if spec.interface == "none" else []
    found = claim_states(cluster.pk, spec.namespace, [spec.claim] if spec.claim else [])
    place = found[spec.claim].place if spec.claim in found else EVERYWHERE
    return manifests.job(spec, site, gpu_nodes=hosts, volume_nodes=place.terms)
