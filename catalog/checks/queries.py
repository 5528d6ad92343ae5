"""The input of the standing checks: nodes, slices and queues from the mirror, and the rows of the catalog."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from catalog.checks import suite
from catalog.checks.nodes import STATE
from catalog.checks.types import CheckedClass, CheckedNode, CheckedQueue, CheckedSite, Finding
from catalog.classes import queries
from catalog.classes.proposals.queries import dismissed_proposals
from catalog.discovery import queries as discovery_queries
from catalog.discovery import types as discovery_types
from catalog.discovery.queries import discovery_devices, discovery_node
from catalog.interconnect.queries import latest
from catalog.models import DeviceTrial, GpuClass
from catalog.trials.queries import trials
from catalog.trials.types import DeviceRequest
from cluster.manifests import names
from cluster.models import Cluster
from cluster.reads import observed
from cluster.reads import queries as mirror


@dataclass(frozen=True)
class CheckReport:
    """`findings` None: unknown, which is not the same as no findings. `is_current` False: the state at `as_of`."""

    findings: tuple[Finding, ...] | None
    as_of: datetime | None
    is_current: bool
    problem: str = ""


def check_report(cluster: Cluster) -> CheckReport:
    """Seven queries whatever the number of nodes and classes, two more where devices are claimed, and where the site
    offers storage classes; one while nothing is known.
    """
    has_kueue = cluster.has_kueue
    as_of = mirror.as_of(cluster.pk, "Node", "ResourceSlice", "DeviceClass", *(["ClusterQueue"] if has_kueue else []))
    if as_of.at is None:
        return CheckReport(None, None, False, as_of.problem)
    slices = mirror.objects(cluster.pk, kind="ResourceSlice")
    queues = mirror.objects(cluster.pk, kind="ClusterQueue") if has_kueue else []
    on_nodes = list(GpuClass.objects.filter(cluster=cluster).exclude(interface=GpuClass.Interface.STORAGE))
    has_claims = bool(slices) or any(one.interface == GpuClass.Interface.DRA for one in on_nodes)
    profile = cluster.site_profile
    tried = trials(cluster) if has_claims else {}
    device_classes = mirror.objects(cluster.pk, kind="DeviceClass") if has_claims else []
    site = CheckedSite(
        nodes=tuple(_node(node, profile.gpu_taints) for node in mirror.nodes(cluster.pk)),
        slices=tuple(device for one in slices for device in discovery_devices(one)),
        classes=tuple(_offer(gpu_class, tried) for gpu_class in on_nodes),
        # During the grace period of a grant, its team's queue is in a Cohort of its own.
        queues=tuple(
            _queue(one) for one in queues if one.record["cohort"] in (cluster.cohort, names.own_cohort(one.name))
        )
        if has_kueue
        else None,
        counted=discovery_queries.counted_in(tried.values()),
        device_classes=frozenset(one.name for one in device_classes),
        profile=profile,
        storage_classes=_storage_classes(cluster) if profile.storage_classes else None,
        measured=latest(cluster),
        dismissed=frozenset(dismissed_proposals(cluster).values_list("slug", flat=True)),
    )
    return CheckReport(suite.check_site(site), as_of.at, as_of.is_current, as_of.problem)


def _storage_classes(cluster: Cluster) -> set[str] | None:
    if not mirror.is_known(cluster.pk, "StorageClass"):
        return None
    return {one.name for one in mirror.objects(cluster.pk, kind="StorageClass")}


def _node(node: observed.Node, gpu_taints: Collection[str]) -> CheckedNode:
    writer = node.writers.get(STATE)
    return CheckedNode(
        seen=discovery_node(node, gpu_taints),
        capacity={name: units for name, units in node.capacity.items() if discovery_types.is_device(name)},
        is_ready=node.ready,
        ready_since=node.ready_since,
        state_since=writer.at if writer else None,
        uid=node.uid,
    )


def _offer(gpu_class: GpuClass, tried: Mapping[DeviceRequest, DeviceTrial]) -> CheckedClass:
    names = ("slug", "name", "resource", "node_labels", "product", "partition", "sharing", "replicas", "interface")
    same = {name: getattr(gpu_class, name) for name in (*names, "device_class", "device_selector", "memory_mib")}
    found = tried.get(DeviceRequest(gpu_class.device_class, gpu_class.device_selector))
    return CheckedClass(
        **same,
        id=gpu_class.pk,
        flavor=queries.flavor_name(gpu_class),
        is_open=gpu_class.life_cycle in queries.OPEN_STATES,
        is_draft=gpu_class.life_cycle == GpuClass.LifeCycle.DRAFT,
        is_autoscaled=gpu_class.is_autoscaled,
        trial=found.verdict if found else "",
        trial_text=found.text if found else "",
    )


def _queue(one: observed.GenericObject) -> CheckedQueue:
    return CheckedQueue(one.name, {flavor: frozenset(cells) for flavor, cells in one.record["quota"].items()})
