"""Kinds of faults, and what an answer of Prometheus says about the faults of GPUs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from usage.telemetry.types import Series


class FaultKind(StrEnum):
    XID = "xid"
    ECC = "ecc_double_bit"
    ROW_REMAP = "row_remap_failure"
    HOT = "hot"
    THROTTLED = "thermal_throttling"
    NVLINK = "nvlink_errors"


# Faults that are a moment, and not a state that lasts. A run that starts afterwards had no part in them.
MOMENTS = frozenset({FaultKind.XID, FaultKind.ECC})
# The label of a query's answer that names the kind.
KIND_LABEL = "fault"
# What may be a part of a query. The identifiers of NVIDIA are of these characters.
DEVICE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,79}")
INSTANCE_NAME = re.compile(r"[0-9]{0,9}")
NODE_MOST = 253
MODEL_MOST = 80
CODE_MOST = 9_999


@dataclass(frozen=True, order=True)
class DeviceKey:
    """`instance`: of a MIG instance; "" for the GPU."""

    device: str
    instance: str = ""


@dataclass(frozen=True, order=True)
class FaultKey:
    """`code`: of an XID, 0 for other kinds."""

    device: DeviceKey
    kind: FaultKind
    code: int = 0


@dataclass(frozen=True)
class Signal:
    """A fault that is there now. `value`: see usage.faults.promql."""

    key: FaultKey
    node: str
    model: str
    value: float


@dataclass(frozen=True)
class DevicePod:
    """A pod that held the device a moment ago. `instance`: of its MIG instance, "" for the whole GPU."""

    device: str
    instance: str
    namespace: str
    pod: str


def signals_of(answered: Iterable[Series]) -> dict[FaultKey, Signal]:
    """What no exporter of NVIDIA writes is left out."""
    found: dict[FaultKey, Signal] = {}
    for series in answered:
        device, kind = _device_of(series), _kind_of(series)
        value = series.points[-1][1] if series.points else None
        if device is None or kind is None or value is None:
            continue
        code = int(value) if kind is FaultKind.XID else 0
        if not 0 <= code <= CODE_MOST:
            continue
        node, model = series.labels.get("hostname", ""), series.labels.get("modelName", "")
        one = Signal(FaultKey(device, kind, code), node[:NODE_MOST], model[:MODEL_MOST], value)
        before = found.get(one.key)
        # NVLink has a series for each kind of its errors.
        if before is None or before.value < value:
            found[one.key] = one
    return found


def measured_of(answered: Iterable[Series]) -> set[tuple[DeviceKey, FaultKind]]:
    """What was measured for as long as its rule looks back."""
    return set(_measured(answered))


def _measured(answered: Iterable[Series]) -> Iterator[tuple[DeviceKey, FaultKind]]:
    for series in answered:
        device, kind = _device_of(series), _kind_of(series)
        if series.points and device is not None and kind is not None:
            yield device, kind


def pods_of(answered: Iterable[Series]) -> list[DevicePod]:
    found = []
    for series in answered:
        device = _device_of(series)
        namespace, pod = series.labels.get("namespace", ""), series.labels.get("pod", "")
        if series.points and device is not None and namespace and pod:
            found.append(DevicePod(device.device, device.instance, namespace, pod))
    return found


def _device_of(series: Series) -> DeviceKey | None:
    device, instance = series.labels.get("UUID", ""), series.labels.get("GPU_I_ID", "")
    if not DEVICE_NAME.fullmatch(device) or not INSTANCE_NAME.fullmatch(instance):
        return None
    return DeviceKey(device, instance)


_KINDS = {str(kind): kind for kind in FaultKind}


def _kind_of(series: Series) -> FaultKind | None:
    return _KINDS.get(series.labels.get(KIND_LABEL, ""))
