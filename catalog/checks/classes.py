"""Standing checks of classes against nodes: does the catalog still describe the nodes? Pure.

Findings always come in the same order. Checks of nodes alone are in `nodes.py`, of classes against queues in
`queues.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from catalog.checks.types import (
    CheckedClass,
    CheckedSite,
    Finding,
    Severity,
    Subject,
    counted,
    counts_kind,
    labels_text,
)
from catalog.contract.types import FEW_REPLICAS
from catalog.discovery.types import ClassProposal
from portal.ui.text import first_names

CLIQUE = "nvidia.com/gpu.clique"
MACHINE = "nvidia.com/gpu.machine"


def class_without_nodes(site: CheckedSite) -> Iterator[Finding]:
    for offer in site.open:
        if offer.interface == "none":
            continue
        ready = {node.name: node for node in site.nodes if node.is_ready}
        has = site.held[offer.id]
        if ready.keys() & has.keys() or (offer.is_dra and not site.counted.get(offer.device_class)):
            continue
        selected = [node for node in site.nodes if offer.selects(node)]
        since = None
        if has:
            down = [node for node in site.nodes if node.name in has]
            known = [node.ready_since for node in down]
            since = max(at for at in known if at) if all(known) else None
            sentence = f"No node of class {offer.name} is ready: {first_names(has)}."
            remedy = "Find out why the nodes are not ready; until then the class has no capacity."
        elif selected:
            what = f"devices of class {offer.device_class}" if offer.is_dra else offer.resource
            sentence = (
                f"Class {offer.name} has {counted(len(selected), 'node')} "
                f"({first_names(node.name for node in selected)}), but none of them advertises {what}."
            )
            # The resource of an open class cannot change.
            remedy = (
                "Check the DRA driver on these nodes, or retire the class."
                if offer.is_dra
                else "Check the device plugin on these nodes, or retire the class: an open class keeps its resource."
            )
        elif offer.is_autoscaled:
            continue
        else:
            sentence = (
                f"No node provides class {offer.name}: none of {counted(len(site.nodes), 'node')} "
                f"has {labels_text(offer.node_labels)}."
            )
            remedy = "Correct the labels of the class, or retire it."
        yield Finding("class_without_nodes", Severity.ERROR, offer.subject, sentence, remedy, since)


def resource_not_offered(site: CheckedSite) -> Iterator[Finding]:
    for finding in _not_offered(site):
        if finding.code == "resource_not_offered":
            yield finding
    for problem in site.discovery.problems:
        yield Finding("resource_not_offered", Severity.WARNING, Subject("catalog"), problem, "")


def slices_not_offered(site: CheckedSite) -> Iterator[Finding]:
    for finding in _not_offered(site):
        if finding.code == "slices_not_offered":
            yield finding


def _not_offered(site: CheckedSite) -> Iterator[Finding]:
    """Yields one finding per kind of capacity, with the nodes on which no open class counts it."""
    nodes = {node.name: node for node in site.nodes}
    drafts = [offer for offer in site.classes if offer.is_draft]
    for kind in site.discovery.proposals:
        if not kind.resource or kind.slug in site.dismissed:
            continue
        offers = [offer for offer in site.open if counts_kind(offer, kind)]
        everywhere = [name for first in kind.nodes for name in site.alike[first]]
        left = [name for name in everywhere if not any(name in site.held[offer.id] for offer in offers)]
        if not left:
            continue
        units = sum(one.units for name in left for one in site.kinds[name] if _is_same(one, kind))
        draft = next((o for o in drafts if counts_kind(o, kind) and any(o.selects(nodes[name]) for name in left)), None)
        is_cut = kind.partition != "none"
        sort = f"slices ({kind.partition}) of" if is_cut else "units of"
        yield Finding(
            "slices_not_offered" if is_cut else "resource_not_offered",
            Severity.WARNING,
            Subject("node", min(left)),
            f"No class offers {units} {sort} {kind.resource} ({kind.name}) on {first_names(left)}.",
            f"The draft class {draft.name} would offer them: activate it."
            if draft
            else f"Accept the proposal {kind.slug}, or dismiss it with a reason.",
            remedy_on=draft.subject if draft else Subject("proposal", kind.slug),
        )


def _is_same(one: ClassProposal, kind: ClassProposal) -> bool:
    return (one.resource, one.partition, one.device_class) == (kind.resource, kind.partition, kind.device_class)


def label_contradicts_class(site: CheckedSite) -> Iterator[Finding]:
    """If nodes of one class have several products, `unlike_products` reports it; it is not repeated here."""
    for offer in site.open:
        if offer.is_dra or offer.interface == "none":
            continue
        has = site.held[offer.id]
        is_mixed = len({kind.product for kind in has.values()}) > 1
        said: dict[tuple[str, str, str], list[str]] = {}
        for node, kind in has.items():
            for contradiction in _contradictions(offer, kind, is_mixed=is_mixed):
                said.setdefault(contradiction, []).append(node)
        for (field, expected, seen), nodes in sorted(said.items()):
            yield Finding(
                "label_contradicts_class",
                Severity.ERROR,
                offer.subject,
                f"Class {offer.name} states {field} {expected}, but the labels of {first_names(nodes)} state {seen}.",
                "Correct the class, or add a label to it that excludes these nodes.",
            )


def _contradictions(offer: CheckedClass, kind: ClassProposal, *, is_mixed: bool) -> Iterator[tuple[str, str, str]]:
    if offer.partition != kind.partition:
        yield "partition", offer.partition, kind.partition
        return
    if offer.product and offer.product != kind.product:
        if not is_mixed:
            yield "product", offer.product, kind.product
        return
    if offer.sharing != kind.sharing:
        if not _is_unrenamed(offer, kind):
            yield "sharing", offer.sharing, kind.sharing
        return
    if offer.replicas != kind.replicas:
        yield "replicas", str(offer.replicas), str(kind.replicas)
    elif offer.memory_mib and kind.memory_mib and offer.memory_mib != kind.memory_mib:
        yield "memory", f"{offer.memory_mib} MiB", f"{kind.memory_mib} MiB"


def exclusive_on_shared(site: CheckedSite) -> Iterator[Finding]:
    for offer in site.open:
        shared = {node: kind for node, kind in site.held[offer.id].items() if _is_unrenamed(offer, kind)}
        if shared:
            kinds = sorted({f"{kind.replicas} by {kind.sharing}" for kind in shared.values()})
            yield Finding(
                "exclusive_on_shared",
                Severity.ERROR,
                offer.subject,
                f"Class {offer.name} is exclusive, but each GPU of {first_names(shared)} is shared among "
                f"{' or '.join(kinds)}, and a share is exposed as {offer.resource}.",
                "Add nvidia.com/gpu.sharing-strategy=none to the labels of the class, "
                "or rename shares there (renameByDefault of the device plugin).",
            )


def many_time_slices(site: CheckedSite) -> Iterator[Finding]:
    for offer in site.open:
        if offer.sharing == "time-slicing" and offer.replicas > FEW_REPLICAS:
            what = "slice" if offer.partition != "none" else "GPU"
            yield Finding(
                "many_time_slices",
                Severity.HINT,
                offer.subject,
                f"Class {offer.name} is time-sliced ×{offer.replicas} on one {what}: while all pods compute, each "
                f"waits for {offer.replicas - 1} others, and the memory of the {what} has to do for all.",
                f"Use at most {FEW_REPLICAS} replicas and a class of its own for them, or MIG slices, which are "
                "isolated.",
            )


def _is_unrenamed(offer: CheckedClass, kind: ClassProposal) -> bool:
    return offer.sharing == "none" and kind.sharing != "none" and not offer.resource.endswith(".shared")


def unlike_products(site: CheckedSite) -> Iterator[Finding]:
    for offer in site.open:
        products: dict[str, list[str]] = {}
        for node, kind in site.held[offer.id].items():
            if kind.product:
                products.setdefault(kind.product, []).append(node)
        if len(products) > 1:
            told = "; ".join(f"{product} on {first_names(nodes)}" for product, nodes in sorted(products.items()))
            yield Finding(
                "unlike_products",
                Severity.ERROR,
                offer.subject,
                f"Class {offer.name} mixes {len(products)} products: {told}.",
                "Add the product label to its labels, and create a class for each product.",
            )


def unlike_interconnects(site: CheckedSite) -> Iterator[Finding]:
    """For exclusive classes only: a share or a slice exchanges no data with other GPUs. Cliques differ from rack to
    rack by design; the problem is that some nodes have one and others none.
    """
    nodes = {node.name: node for node in site.nodes}
    for offer in site.open:
        if offer.sharing != "none" or offer.partition != "none":
            continue
        here = [nodes[name] for name in site.held[offer.id]]
        machines = {node.labels[MACHINE] for node in here if MACHINE in node.labels}
        linked = {node.name for node in here if node.labels.get(CLIQUE)}
        if len(machines) > 1:
            what = f"{len(machines)} machines, with possibly different interconnects: {', '.join(sorted(machines))}"
        elif linked and len(linked) < len(here):
            alone = {node.name for node in here} - linked
            what = (
                f"nodes in an NVLink clique ({first_names(linked)}) and nodes without a clique ({first_names(alone)})"
            )
        else:
            continue
        yield Finding(
            "unlike_interconnects",
            Severity.WARNING,
            offer.subject,
            f"Class {offer.name} mixes {what}.",
            f"Add {MACHINE} or another label to its labels, and create one class for each interconnect.",
        )


def same_capacity(site: CheckedSite) -> Iterator[Finding]:
    """Pairs in which one selector is part of the other are reported by `selector_is_part`."""
    others: dict[int, list[str]] = {}
    shared: dict[int, set[str]] = {}
    for one, other in _same_resource(site):
        if _is_part(one, other) or _is_part(other, one):
            continue
        both = site.held[one.id].keys() & site.held[other.id].keys()
        if both or dict(one.node_labels) == dict(other.node_labels):
            others.setdefault(other.id, []).append(one.name)
            shared.setdefault(other.id, set()).update(both)
    for offer in site.open:
        if offer.id in others:
            where = f" on {first_names(shared[offer.id])}" if shared[offer.id] else ""
            yield Finding(
                "same_capacity",
                Severity.WARNING,
                offer.subject,
                f"Class {offer.name} selects the same {offer.resource} as {first_names(others[offer.id])}{where}: "
                "the capacity is counted twice.",
                "Add a label that separates their nodes to each class, or retire one of them.",
            )


def selector_is_part(site: CheckedSite) -> Iterator[Finding]:
    narrower: dict[int, list[str]] = {}
    for one, other in _same_resource(site):
        for wide, narrow in ((one, other), (other, one)):
            if _is_part(wide, narrow):
                narrower.setdefault(wide.id, []).append(narrow.name)
    for offer in site.open:
        if offer.id in narrower:
            yield Finding(
                "selector_is_part",
                Severity.WARNING,
                offer.subject,
                f"Class {offer.name} selects {labels_text(offer.node_labels)}, which is only part of what "
                f"{first_names(narrower[offer.id])} selects, under the same resource name {offer.resource}: "
                "its workloads can use the other's nodes.",
                "Add a distinguishing label to both.",
            )


def _same_resource(site: CheckedSite) -> Iterator[tuple[CheckedClass, CheckedClass]]:
    """Pairs of open classes that use one resource name and request it in the same way."""
    alike: dict[tuple[str, str, str], list[CheckedClass]] = {}
    for offer in site.open:
        if offer.resource:
            alike.setdefault((offer.resource, offer.device_class, offer.device_selector), []).append(offer)
    for offers in alike.values():
        yield from combinations(offers, 2)


def _is_part(wide: CheckedClass, narrow: CheckedClass) -> bool:
    return wide.node_labels.items() < narrow.node_labels.items()
