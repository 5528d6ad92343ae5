"""What a maintenance of some nodes would affect: runs, other pods, classes and what is granted of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.urls import reverse

from catalog.classes import queries as class_queries
from catalog.classes.capacity.queries import capacities
from cluster.models import Cluster
from cluster.reads import queries as mirror
from operations.maintenance.affected import on_nodes
from operations.maintenance.choices.outcome import at_drain
from operations.maintenance.choices.policy import ENDS_BEFORE, RESTART, STAYS, STOP
from operations.maintenance.notifications import consequence
from operations.models import Maintenance
from portal.ui.text import plural
from tenants.core.queries import database_now
from tenants.grants.queries import unlendable_units
from workloads.forecast.queries import waiting_units


@dataclass(frozen=True)
class AffectedRun:
    """`person`: who launched it; `what`: what the maintenance does to it; `at_drain`: in one word,
    `is_chosen`: because somebody chose it.
    """

    team_slug: str
    team: str
    name: str
    href: str
    person: str
    nodes: tuple[str, ...]
    what: str
    at_drain: str
    is_chosen: bool


@dataclass(frozen=True)
class AffectedClass:
    """`offered` units in all, `here` of them on the nodes, `granted` now, `queued` (None: unknown). `sentence`: what no
    longer holds during the maintenance, "" if nothing.
    """

    slug: str
    name: str
    unit: str
    offered: int
    here: int
    granted: int
    queued: int | None
    sentence: str


@dataclass(frozen=True)
class Preview:
    """`others`: `namespace/name` of pods outside the portal that use devices of the nodes: nobody ends them.
    `is_known`: False without current updates of nodes and pods: the rest is then what was known last.

    `stopping` runs end at the drain, `restarting` ones start elsewhere, both as was chosen; `undecided` ones start
    elsewhere by default. `ending` runs are over by then; `staying` ones cannot be moved, and the drain waits for them.
    """

    runs: tuple[AffectedRun, ...]
    others: tuple[str, ...]
    classes: tuple[AffectedClass, ...]
    is_known: bool

    @property
    def stopping(self) -> int:
        return self._with(STOP)

    @property
    def restarting(self) -> int:
        return self._with(RESTART, is_chosen=True)

    @property
    def undecided(self) -> int:
        return self._with(RESTART, is_chosen=False)

    @property
    def ending(self) -> int:
        return self._with(ENDS_BEFORE)

    @property
    def staying(self) -> int:
        return self._with(STAYS)

    def _with(self, what: str, *, is_chosen: bool | None = None) -> int:
        return sum(run.at_drain == what and is_chosen in (None, run.is_chosen) for run in self.runs)


def preview(cluster: Cluster, row: Maintenance, nodes: Collection[str]) -> Preview:
    """`row` may be unsaved: only its window is read. Nine queries, whatever the number of runs and classes."""
    found = on_nodes(cluster.pk, nodes)
    runs = tuple(
        AffectedRun(
            run.workload.tenant.slug,
            run.workload.tenant.name,
            run.workload.name,
            reverse("workload", args=[run.workload.tenant.slug, run.workload.name]),
            run.requested_by.name,
            tuple(found.nodes_of(run)),
            consequence(row, run),
            outcome.what,
            outcome.is_chosen,
        )
        for run, outcome in ((run, at_drain(row, run)) for run in found.all_runs)
    )
    others = tuple(pod for node in sorted(found.others) for pod in found.others[node])
    classes, is_counted = _classes(cluster, set(nodes))
    is_known = is_counted and mirror.as_of(cluster.pk, "Node", "Pod").is_current
    return Preview(runs, others, classes, is_known)


def _classes(cluster: Cluster, nodes: set[str]) -> tuple[tuple[AffectedClass, ...], bool]:
    known = list(class_queries.open_classes(cluster))
    granted, waiting = unlendable_units(cluster, database_now()), waiting_units(cluster)
    found, is_counted = [], True
    for pk, capacity in capacities(cluster, known, with_nodes=True).items():
        one = next(gpu_class for gpu_class in known if gpu_class.pk == pk)
        if capacity.allocatable is None:
            is_counted = is_counted and one.is_storage
            continue
        here = sum(node.allocatable for node in capacity.nodes if node.name in nodes)
        if here:
            queued = None if waiting is None else waiting.get(one.slug, 0)
            unit, promised = class_queries.unit_of(one), granted.get(pk, 0)
            sentence = _broken(capacity.allocatable, here, promised, unit)
            found.append(
                AffectedClass(one.slug, one.name, unit, capacity.allocatable, here, promised, queued, sentence)
            )
    return tuple(found), is_counted


def _broken(offered: int, here: int, granted: int, unit: str) -> str:
    left = offered - here
    if not left:
        return "Nothing else provides this class: what is queued for it waits until the nodes are back."
    if left < granted:
        return f"{plural(left, unit)} remain, {granted - left} fewer than granted: grants cannot all be used."
    return ""
