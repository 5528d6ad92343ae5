"""What queued gangs need that require one domain of a topology level, and how much of it fits now."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass

from cluster.reads import queries as mirror
from desk.queue.sql import QueueRecord
from portal.ui.text import plural
from workloads.core.class_nodes import ClassNodes
from workloads.models import Run
from workloads.status.observations.node_capacity import nodes_of, requiring_level


@dataclass(frozen=True)
class LevelNeed:
    """`workers` with `units` each in one domain of `level`; `fit` of them fit in the best one now, None: unknown."""

    level: str
    workers: int
    units: int
    fit: int | None

    @property
    def sentence(self) -> str:
        each = f"with {plural(self.units, 'unit')} each"
        needed = f"Needs all {self.workers} workers {each} in one {self.level}"
        if self.fit is None:
            return f"{needed}; how many fit is unknown."
        return f"{needed}; {self.fit} of them {'fits' if self.fit == 1 else 'fit'} in the best one now."


def level_nodes(cluster_id: int, raw: Collection[QueueRecord]) -> dict[int, ClassNodes]:
    """The nodes of runs that require a level, by run; none while nodes or pods are unknown. Three queries, none without
    such runs: runs that request the same are read once.
    """
    wanted = [one.run for one in raw if _is_gang(one)]
    if not wanted or not mirror.is_known(cluster_id, "Node", "Pod"):
        return {}
    places = requiring_level(Run.objects.filter(pk__in=wanted))
    first: dict[str, int] = {}
    same = {pk: first.setdefault(json.dumps(asdict(place), sort_keys=True), pk) for pk, place in places.items()}
    nodes = nodes_of(cluster_id, {pk: places[pk] for pk in first.values()})
    return {pk: nodes[of] for pk, of in same.items()}


def level_need(one: QueueRecord, nodes: Mapping[int, ClassNodes]) -> LevelNeed | None:
    """None: it requires no level, or is one worker, which is always in one domain."""
    if not _is_gang(one):
        return None
    seen = nodes.get(one.run)
    fit = min(one.workers, sum(map(seen.fits, seen.best_domain))) if seen is not None else None
    return LevelNeed(one.level, one.workers, one.each, fit)


def _is_gang(one: QueueRecord) -> bool:
    return bool(one.level) and one.workers > 1
