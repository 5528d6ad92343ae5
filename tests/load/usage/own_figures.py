"""Figures of a run by the test's own PromQL and its own arithmetic: raw samples, added up by the minute.

Nothing here is the portal's: neither its queries, nor its minutes, nor which run had which pod.
"""

from __future__ import annotations

import json
import math
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

HOUR_S, MINUTE_S = 3600, 60
BUSY_FROM = 5.0
# What a person would ask for: percent, and what makes it percent.
UTILISATION, ENGINE = ("DCGM_FI_DEV_GPU_UTIL", 1), ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 100)
# (UUID of the card, id of the MIG instance)
Device = tuple[str, str]


@dataclass(frozen=True)
class OwnMinutes:
    """Activity in percent by the end of each minute, the mean of the devices."""

    by_end: Mapping[int, float]

    @property
    def mean(self) -> float | None:
        return sum(self.by_end.values()) / len(self.by_end) if self.by_end else None

    @property
    def is_idle(self) -> bool:
        return bool(self.by_end) and max(self.by_end.values()) < BUSY_FROM

    def of_hour(self, starts_at: int) -> OwnMinutes:
        return OwnMinutes({end: one for end, one in self.by_end.items() if starts_at < end <= starts_at + HOUR_S})


class Prometheus:
    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, path: str, **form: object) -> Any:
        asked = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(form)}"
        with urllib.request.urlopen(asked, timeout=30) as answer:
            told = json.load(answer)
        assert told["status"] == "success", told
        return told["data"]

    def query(self, query: str, at: float | None = None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("query", query=query, **({"time": at} if at else {}))["result"]
        return found

    def minutes(self, measure: tuple[str, int], selector: str, *, devices: int, since: float, until: int) -> OwnMinutes:
        """Whole minutes that begin at `since` or later, up to the one that ends at `until`. One counts only if all
        `devices` were measured in it and still have their series at its end.
        """
        name, factor = measure
        series = f"{name}{{{selector}}}"
        samples: dict[Device, list[tuple[float, float]]] = {}
        for one in self.query(f"{series}[{max(1, until - int(since))}s]", at=until):
            values = [(float(at), float(value) * factor) for at, value in one["values"]]
            samples.setdefault(_device(one), []).extend(values)
        first = math.ceil(since / MINUTE_S) * MINUTE_S + MINUTE_S
        if first > until:
            return OwnMinutes({})
        ends: dict[int, set[Device]] = {}
        for one in self.ask("query_range", query=series, start=first, end=until, step=MINUTE_S)["result"]:
            for at, _ in one["values"]:
                ends.setdefault(int(at), set()).add(_device(one))
        found = {}
        for end, there in sorted(ends.items()):
            means = [
                _mean([value for at, value in samples.get(one, ()) if end - MINUTE_S < at <= end]) for one in there
            ]
            known = [one for one in means if one is not None]
            if len(known) >= devices:
                found[end] = sum(known) / len(known)
        return OwnMinutes(found)

    def alerts(self) -> set[tuple[str, str, str]]:
        """Those that fire: (name, node, UUID of the card)."""
        return {
            (one["labels"]["alertname"], one["labels"].get("hostname", ""), one["labels"].get("UUID", ""))
            for one in self.ask("alerts")["alerts"]
            if one["state"] == "firing"
        }

    def rules(self) -> set[str]:
        return {rule["name"] for group in self.ask("rules")["groups"] for rule in group["rules"]}


def _device(series: dict[str, Any]) -> Device:
    return series["metric"]["UUID"], series["metric"].get("GPU_I_ID", "")


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def pods_of(namespace: str, job: str) -> str:
    """Selects the series of a Job's pods."""
    return f'exported_namespace="{namespace}",exported_pod=~"{job}-[a-z0-9]+"'


def is_near(told: float, own: float) -> bool:
    """Within 1 % of the figure, or 0.01 points near 0. Both are made of the same samples, so that a difference would be
    one of minutes, of devices or of runs.
    """
    return abs(told - own) <= max(0.01 * abs(own), 0.01)
