"""The samples that Prometheus would have if the pods of now had run for some hours: OpenMetrics text, from the same
functions as the exporters' answers. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from devcluster.client.types import Json
from devcluster.monitoring import amd_text, dcgm_text
from devcluster.monitoring.assignment import Assignments, Held, Occupants
from devcluster.monitoring.devices import NVIDIA, GpuNode, gpu_node
from devcluster.monitoring.exposition import Labels, labels_text, number
from devcluster.monitoring.prometheus import EXPORTERS, SCRAPE_S, target_labels
from devcluster.monitoring.readings import read_card


def past_lines(
    nodes: Iterable[Json], pods: Iterable[Json], assigned: Mapping[str, Held], *, starts_at: float, ends_at: float
) -> Iterator[str]:
    """Of nodes with a device plugin. Notebooks did nothing; all pods run since `starts_at`. `assigned`: by node, as the
    exporters keep it.
    """
    found = [one for one in map(gpu_node, nodes) if one is not None]
    held = {node.name: _occupants(node, pods, assigned.get(node.name, {}), starts_at) for node in found}
    energy_j: dict[str, float] = {}
    stored: dict[tuple[str, tuple[tuple[str, str], ...]], str] = {}  # names with labels: making them takes the time
    at = starts_at
    while at < ends_at:
        for node in found:
            readings = [read_card(card, held[node.name], at=at, cores={}) for card in node.cards]
            for card, reading in zip(node.cards, readings, strict=True):
                energy_j[card.uuid] = energy_j.get(card.uuid, 0.0) + reading.power_w * SCRAPE_S
            families = (dcgm_text if node.vendor == NVIDIA else amd_text).families
            for family in families(node, held[node.name], readings, energy_j):
                for labels, value in family.samples:
                    key = family.name, tuple(labels.items())
                    if key not in stored:
                        stored[key] = family.name + labels_text(_as_stored(labels, node))
                    yield f"{stored[key]} {number(value)} {at:.3f}"
            yield f"up{labels_text(target_labels(node))} 1 {at:.3f}"
        at += SCRAPE_S
    yield "# EOF"


def _occupants(node: GpuNode, pods: Iterable[Json], held: Held, started_at: float) -> Occupants:
    bound = [pod for pod in pods if pod["spec"].get("nodeName") == node.name]
    return {
        place: tuple(replace(one, started_at=started_at, is_running=True) for one in those)
        for place, those in Assignments(held).update(node, bound).items()
    }


def _as_stored(labels: Labels, node: GpuNode) -> Mapping[str, str]:
    """What Prometheus makes of the labels of a sample and those of its target."""
    of_target = target_labels(node)
    *_, honours = EXPORTERS[node.vendor]
    if honours:
        return {name: value for name, value in (of_target | {**labels}).items() if value}
    return {f"exported_{name}" if name in of_target else name: value for name, value in labels.items()} | of_target
