"""What is to be tried of a cluster, and what was found."""

from __future__ import annotations

from catalog.discovery.queries import seen_device_classes
from catalog.models import DeviceTrial, GpuClass
from catalog.trials.types import DeviceRequest
from cluster.models import Cluster


def device_requests(cluster: Cluster) -> set[DeviceRequest]:
    """Every device class that a class or a device of the cluster names, and every selector of a class. Two queries."""
    classes = GpuClass.objects.filter(cluster=cluster, interface=GpuClass.Interface.DRA)
    rows = classes.exclude(life_cycle=GpuClass.LifeCycle.RETIRED).values_list("device_class", "device_selector")
    named = {DeviceRequest(*row) for row in rows}
    return named | {DeviceRequest(one) for one in {one.device_class for one in named} | seen_device_classes(cluster)}


def trials(cluster: Cluster) -> dict[DeviceRequest, DeviceTrial]:
    """Every trial with an outcome. One query."""
    rows = DeviceTrial.objects.filter(cluster=cluster, tried_at__isnull=False)
    return {DeviceRequest(row.device_class, row.selector): row for row in rows}


def trials_of(gpu_class: GpuClass) -> tuple[DeviceTrial | None, DeviceTrial | None]:
    """Of its device class, and of its selector there; None: not tried yet. One query."""
    counted = DeviceRequest(gpu_class.device_class)
    selected = DeviceRequest(gpu_class.device_class, gpu_class.device_selector)
    keys = [counted.key, selected.key]
    rows = DeviceTrial.objects.filter(cluster=gpu_class.cluster, key__in=keys, tried_at__isnull=False)
    found = {row.key: row for row in rows}
    return found.get(counted.key), found.get(selected.key)
