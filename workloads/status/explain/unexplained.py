"""Texts of the cluster that no explanation knows. They are shown unchanged and counted, so that one can be added."""

from __future__ import annotations

from collections import OrderedDict

from prometheus_client import Counter

from workloads.status.explain.types import Explanation

UNEXPLAINED = Counter(
    "portal_unknown_explanations_total", "Texts of the cluster that no explanation knows.", ["said_by", "reason"]
)
# Pages are read again and again: each text of a run is counted only once per process.
_REMEMBERED = 10_000
_counted: OrderedDict[tuple[int, str], None] = OrderedDict()


def is_unexplained(told: Explanation) -> bool:
    return bool(told.raw) and not told.is_known


def count_unexplained(told: Explanation | None, *, run_id: int) -> None:
    if told is None or not is_unexplained(told):
        return
    key = (run_id, told.raw)
    if key in _counted:
        _counted.move_to_end(key)
        return
    _counted[key] = None
    if len(_counted) > _REMEMBERED:
        _counted.popitem(last=False)
    UNEXPLAINED.labels(told.raw_from, told.reason).inc()
