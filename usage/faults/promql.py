"""Three queries for the faults of all GPUs, whatever their number. Pure.

What is a fault, names of metrics and thresholds are those of deploy/monitoring/rules/gpu-records.yaml and
gpu-alerts.yaml: change both. tests/usage/faults/test_promql.py compares them on the same samples. The portal does not
read the recorded series, because a site may not load the rules.

A sub-query of one minute takes the place of the recorded series, and one of a minute more the place of `for`.

| kind | value |
|---|---|
| XID | the code |
| ECC, NVLink | errors in the last minutes, extrapolated |
| row remapping | 1 |
| temperature | °C |
| throttling | minutes, 6 |
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from usage.faults.types import KIND_LABEL, FaultKind

# The rules look back so far for a change, and wait so long for a state that lasts.
WINDOW_MINUTES = 10
LASTS_MINUTES = 5
HOT_CELSIUS = 85
VIOLATION_SHARE = 0.1
# Bits 5 and 6 of the clock event reasons, software and hardware slowdown by temperature.
THERMAL_BIT = 32
# A pod whose series ended in the last minutes may be the one that the fault has ended.
HELD_MINUTES = 2
DEVICES_MOST = 1_000


@dataclass(frozen=True)
class Gauges:
    """The names of a metric, the first one that an exporter has. `labels`: what tells its series apart."""

    names: tuple[str, ...]
    labels: tuple[str, ...] = ("hostname", "UUID", "modelName")

    def expression(self, devices: Collection[str] = ()) -> str:
        """One series for each device, whoever holds it. `devices`: UUIDs; empty: of all."""
        found = " or ".join(f"{name}{_selected(devices)}" for name in self.names)
        return f'max by ({", ".join(self.labels)}) (label_replace({found}, "hostname", "$1", "Hostname", "(.+)"))'


_XID = Gauges(("DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR"), ("hostname", "UUID", "GPU_I_ID", "modelName"))
_ECC = Gauges(("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",))
_REMAP = Gauges(("DCGM_FI_DEV_ROW_REMAP_FAILURE", "DCGM_FI_DEV_ROW_REMAP_FAILED"))
_TEMPERATURE = Gauges(("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS"))
_VIOLATION = Gauges(("DCGM_FI_DEV_THERMAL_VIOLATION",))
_REASONS = Gauges(("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"))
_NVLINK = tuple(
    Gauges((f"DCGM_FI_DEV_NVLINK_{kind}_ERROR_COUNT_TOTAL", f"DCGM_FI_DEV_NVLINK_{kind}_ERROR_TOTAL"))
    for kind in ("REPLAY", "RECOVERY", "CRC_DATA")
)


def firing(window: int = WINDOW_MINUTES) -> str:
    """All faults that are there now. `window`: minutes; longer if the portal has not looked for longer."""
    back = f"[{window}m:1m]"
    xid = _XID.expression()
    hot = f"{_TEMPERATURE.expression()} > {HOT_CELSIUS}"
    violation = f"rate(({_VIOLATION.expression()} / 1e9)[{LASTS_MINUTES}m:1m]) > {VIOLATION_SHARE}"
    throttled = f"{violation} or floor({_REASONS.expression()} / {THERMAL_BIT}) % 4 > 0"
    return _union(
        {
            FaultKind.XID: f"({xid} > 0) and changes(({xid}){back}) > 0",
            FaultKind.ECC: f"increase(({_ECC.expression()}){back}) > 0",
            FaultKind.ROW_REMAP: f"{_REMAP.expression()} > 0",
            FaultKind.HOT: f"({hot}) and {_lasted(hot)}",
            FaultKind.THROTTLED: _lasted(throttled),
            FaultKind.NVLINK: " or ".join(f"increase(({one.expression()}){back}) > 0" for one in _NVLINK),
        }
    )


def measured(devices: Collection[str], window: int = WINDOW_MINUTES) -> str:
    """Of these devices, the kinds that were measured in each minute that their rule looks at."""

    def all_minutes(expression: str) -> str:
        return f"count_over_time(({expression})[{window}m:1m]) >= {window}"

    return _union(
        {
            FaultKind.XID: all_minutes(_XID.expression(devices)),
            FaultKind.ECC: all_minutes(_ECC.expression(devices)),
            FaultKind.ROW_REMAP: _REMAP.expression(devices),
            FaultKind.HOT: _lasted(_TEMPERATURE.expression(devices)),
            FaultKind.THROTTLED: _lasted(f"{_VIOLATION.expression(devices)} or {_REASONS.expression(devices)}"),
            FaultKind.NVLINK: " or ".join(all_minutes(one.expression(devices)) for one in _NVLINK),
        }
    )


def holders(devices: Collection[str]) -> str:
    """The pods on these devices now and in the last minutes. Labels of pods as in usage.telemetry.promql."""
    found = f"last_over_time(DCGM_FI_DEV_FB_USED{_selected(devices)}[{HELD_MINUTES}m])"
    for name in ("namespace", "pod"):
        found = f'label_replace({found}, "{name}", "$1", "exported_{name}", "(.+)")'
    return f"max by (namespace, pod, UUID, GPU_I_ID) ({found})"


def _union(each: Mapping[FaultKind, str]) -> str:
    return " or ".join(f'label_replace({text}, "{KIND_LABEL}", "{kind}", "", "")' for kind, text in each.items())


def _lasted(expression: str) -> str:
    """As `for` of a rule: at each of the minutes, and at the one where they begin."""
    return f"count_over_time(({expression})[{60 * LASTS_MINUTES + 1}s:1m]) > {LASTS_MINUTES}"


def _selected(devices: Collection[str]) -> str:
    """Their names are checked by usage.faults.types.DEVICE_NAME. All devices if there are too many to be listed."""
    return f'{{UUID=~"{"|".join(sorted(devices))}"}}' if 0 < len(devices) <= DEVICES_MOST else ""
