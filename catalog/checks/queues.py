"""Standing checks of classes against queues: what Kueue would refuse, or keep pending forever. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from catalog.checks.types import CheckedSite, Finding, Severity, Subject, counted
from portal.ui.text import first_names

# Resources that Kueue ignores. Equal to excludeResourcePrefixes in deploy/kueue/manager-config.yaml (a test compares).
EXCLUDED_PREFIXES = ("cpu", "memory", "ephemeral-storage", "hugepages-", "rdma/", "vpc.amazonaws.com/")
# Limits of Kueue's API: flavors of a group; groups and flavors of a queue; labels of a flavor. The limit of cells in a
# group (512, flavor × resource) cannot be reached, since each of our groups has one resource.
FLAVORS = 64
GROUPS = 16
FLAVORS_OF_A_QUEUE = 256
LABELS = 8
# Every queue has one more group with one flavor, see cluster/manifests/namespace.py.
PLAIN = 1


def resource_not_covered(site: CheckedSite) -> Iterator[Finding]:
    for offer in site.open:
        if not offer.resource or offer.resource.startswith(EXCLUDED_PREFIXES):
            continue
        queues = [
            q.name for q in site.queues or () if offer.resource not in q.cells.get(offer.flavor, {offer.resource})
        ]
        if queues:
            yield Finding(
                "resource_not_covered",
                Severity.ERROR,
                offer.subject,
                f"Pods of class {offer.name} request {offer.resource}, which queue {first_names(queues)} neither "
                "covers for that class nor excludes: its workloads stay pending there.",
                "Undo the change of the queue; the portal repairs the drift when it detects it.",
            )


def device_class_not_mapped(site: CheckedSite) -> Iterator[Finding]:
    for offer in site.open if site.queues is not None else ():
        if not offer.is_dra or (mapped := site.device_classes.get(offer.device_class)) == offer.resource:
            continue
        says = f"maps it to {mapped}, not to {offer.resource}" if mapped else "does not map it to any resource"
        yield Finding(
            "device_class_not_mapped",
            Severity.ERROR,
            offer.subject,
            f"Class {offer.name} requests device class {offer.device_class}, but Kueue {says}: "
            "its workloads are never admitted.",
            f"Correct the resource name of the class: {mapped}."
            if mapped
            else "Add it to deviceClassMappings of Kueue's manager configuration and restart Kueue.",
        )


def queue_limits(site: CheckedSite) -> Iterator[Finding]:
    """Checks a queue with every class, like that of a team with quota for everything."""
    if site.queues is None:
        return
    offers = [offer for offer in site.open if offer.resource]
    flavors = Counter(offer.resource for offer in offers)
    for resource, number in sorted(flavors.items()):
        if number > FLAVORS:
            yield _limit(
                f"{counted(number, 'class')} use {resource}; Kueue supports at most {FLAVORS} flavors per group.",
                f"Retire {number - FLAVORS}, or give them another resource name.",
            )
    if (groups := len(flavors) + PLAIN) > GROUPS:
        yield _limit(
            f"The catalog has {len(flavors)} resources, which with the queue's own is {groups} groups; "
            f"Kueue supports at most {GROUPS} per queue.",
            f"Retire the classes of {counted(groups - GROUPS, 'resource')}.",
        )
    if (total := len(offers) + PLAIN) > FLAVORS_OF_A_QUEUE:
        yield _limit(
            f"The catalog has {counted(len(offers), 'class')}, which with the queue's own flavor is {total}; "
            f"Kueue supports at most {FLAVORS_OF_A_QUEUE} per queue.",
            f"Retire {counted(total - FLAVORS_OF_A_QUEUE, 'class')}.",
        )
    for offer in offers:
        if len(offer.node_labels) > LABELS:
            yield Finding(
                "queue_limit",
                Severity.ERROR,
                offer.subject,
                f"Class {offer.name} has {len(offer.node_labels)} labels; Kueue supports at most {LABELS} per flavor.",
                "Keep the labels that distinguish its nodes from others.",
            )


def _limit(sentence: str, remedy: str) -> Finding:
    return Finding("queue_limit", Severity.ERROR, Subject("catalog"), sentence, remedy)
