"""Standing checks of what was measured of the interconnect: nodes of one class that differ, and figures that are old.
Pure. What is not measured is no finding.
"""

from __future__ import annotations

from collections.abc import Iterator

from catalog.checks.types import CheckedClass, CheckedSite, Finding, Severity, Subject
from catalog.interconnect.comparison import ClassInterconnect, compare
from catalog.interconnect.node_state import outdated, state_of
from catalog.interconnect.types import rate
from portal.ui.text import first_names


def unlike_links(site: CheckedSite) -> Iterator[Finding]:
    for offer, found in _compared(site):
        if len(found.links) > 1:
            groups = "; ".join(f"{one.links.text} on {first_names(one.nodes)}" for one in found.links)
            yield Finding(
                "unlike_links",
                Severity.WARNING,
                offer.subject,
                f"The links between the GPUs of {offer.name} differ by node: {groups}.",
                "Measure the nodes that differ again. If they still differ, check their NVLinks, or give them a class "
                "of their own.",
            )


def slow_links(site: CheckedSite) -> Iterator[Finding]:
    for offer, found in _compared(site):
        for group in found.rates:
            for node, part in group.slow.items():
                yield Finding(
                    "slow_links",
                    Severity.WARNING,
                    Subject("node", node),
                    f"all_reduce on node {node} reached {rate(group.rates[node])} with {group.on.on}, {part:.0%} below "
                    f"the median of {offer.name}, {rate(group.median)} of {len(group.rates)} nodes.",
                    "Measure the node again while nothing else runs on it. If it is still slower, check its links and "
                    "its clocks (nvidia-smi -q -d PERFORMANCE).",
                )


def old_measurement(site: CheckedSite) -> Iterator[Finding]:
    for node in sorted(site.nodes, key=lambda one: one.name):
        now = state_of(node.labels, node.uid)
        why = next((why for one in site.measured.get(node.name, ()) if (why := outdated(one.state, now))), "")
        if why:
            yield Finding(
                "old_measurement",
                Severity.HINT,
                Subject("node", node.name),
                f"What was measured of the interconnect of node {node.name} may no longer hold: {why}.",
                "Measure it again; until then its figures are not compared.",
            )


def _compared(site: CheckedSite) -> Iterator[tuple[CheckedClass, ClassInterconnect]]:
    nodes = {node.name: node for node in site.nodes}
    for offer in site.open if site.measured else ():
        if offer.partition == "none" and offer.sharing == "none":
            has = {name: state_of(nodes[name].labels, nodes[name].uid) for name in site.held[offer.id]}
            yield offer, compare(has, site.measured)
