"""The mirror as if the watcher had listed the simulated hardware: for tests of what is computed from it."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from django.utils import timezone

from catalog.models import DeviceTrial
from catalog.trials.types import DeviceRequest
from cluster.mirror.records.kinds import KINDS
from cluster.mirror.watch import NoteType, WatchNote
from cluster.mirror.writer import MirrorWriter
from cluster.models import Cluster, MirrorEpoch, MirrorKind
from devcluster.client import yaml_files
from devcluster.controlplane import hardware
from devcluster.processes.paths import ROOT

Raw = dict[str, Any]
_SETTINGS = yaml_files.read(ROOT / "deploy/kueue/manager-config.yaml")
MAPPED: dict[str, str] = {
    name: one["name"] for one in _SETTINGS["resources"]["deviceClassMappings"] for name in one["deviceClassNames"]
}


def hardware_seen(cluster: Cluster, name: str = "mixed", **more: Iterable[Raw]) -> MirrorWriter:
    """Mirrors all nodes of the file, ready, its device slices and device classes. `more`: raw objects of further kinds,
    for example pods.
    """
    found = _read(name)
    slices = [with_metadata(one) for one in found.slices]
    made = [with_metadata(one) for one in found.objects if one["kind"] == "DeviceClass"]
    kinds = {"Node": [ready(one) for one in found.nodes], "ResourceSlice": slices, "DeviceClass": made}
    return seen(cluster, **{**kinds, **more})


def device_classes_tried(cluster: Cluster, **resources: str) -> None:
    """As if Kueue had been asked: with the mapping of deploy/kueue/manager-config.yaml and `resources`, "" for a device
    class that it does not count.
    """
    for device_class, resource in {**MAPPED, **resources}.items():
        asked = DeviceRequest(device_class)
        verdict = DeviceTrial.Verdict.COUNTED if resource else DeviceTrial.Verdict.NOT_COUNTED
        DeviceTrial.objects.update_or_create(
            cluster=cluster,
            key=asked.key,
            defaults={
                "device_class": device_class,
                "verdict": verdict,
                "resource": resource,
                "tried_at": timezone.now(),
            },
        )


@functools.cache
def _read(name: str) -> hardware.Hardware:
    return hardware.read(name)


def seen(cluster: Cluster, **kinds: Iterable[Raw]) -> MirrorWriter:
    """Lists every kind, with these objects. On the first call the kinds without objects get the writer's marks in one
    statement: two queries for each of twenty empty kinds would take longer than all objects. With device slices, Kueue
    counts the device classes as shipped.
    """
    if "ResourceSlice" in kinds:
        device_classes_tried(cluster)
    mirror = MirrorWriter(cluster.pk)
    mirror.open()
    notes: list[Any] = []
    is_first = not MirrorKind.objects.filter(cluster_id=cluster.pk).exists()
    if is_first:
        now, epoch = timezone.now(), MirrorEpoch.objects.get(cluster_id=cluster.pk).epoch
        MirrorKind.objects.bulk_create(
            MirrorKind(cluster_id=cluster.pk, kind=name, epoch=epoch, listed_at=now, heard_at=now, resource_version="1")
            for name in KINDS.keys() - kinds.keys()
        )
    for kind in KINDS.values():
        if is_first and kind.name not in kinds:
            continue
        notes.append((WatchNote(kind, NoteType.LISTING, "1"), None))
        notes += [(WatchNote(kind, NoteType.SEEN, "1"), kind.seen(raw)) for raw in kinds.get(kind.name, ())]
        notes.append((WatchNote(kind, NoteType.LISTED, "1"), None))
    mirror.write(notes)  # one call: a transaction for each of twenty kinds takes twice as long
    return mirror


def ready(node: Raw) -> Raw:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T09:00:00Z"}]
    return with_metadata({**node, "status": {**node["status"], "conditions": conditions}})


def pod(name: str, *, node: str, namespace: str, gpu_class: str = "", phase: str = "Running", **requests: int) -> Raw:
    """`requests`: keyword by resource name, for example `**{"nvidia.com/gpu": 2}`."""
    labels = {"gpu-portal/owner": "workloads.workload.1", "gpu-portal/class": gpu_class} if gpu_class else {}
    limits = {resource: str(units) for resource, units in requests.items()}
    return with_metadata(
        {
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {"nodeName": node, "containers": [{"name": "main", "resources": {"limits": limits}}]},
            "status": {"phase": phase},
        }
    )


def with_metadata(raw: Raw) -> Raw:
    """Adds the metadata that the API server sets."""
    metadata = raw["metadata"]
    uid = f"{metadata.get('namespace', '')}-{metadata['name']}"[:36]
    stamp = {"uid": uid, "resourceVersion": "1", "creationTimestamp": "2026-11-21T09:00:00Z"}
    return {**raw, "metadata": {**metadata, **stamp}}
