"""Standing checks of classes against queues: what Kueue would refuse, or keep pending forever. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from catalog.checks.types import CheckedClass, CheckedSite, Finding, Severity, Subject
from catalog.checks.types import counted as counted_text
from catalog.discovery.dra_devices import mapping_line
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
    """A class whose device class is not known to be counted is not reported: unknown is not wrong."""
    for offer in site.open if site.queues is not None else ():
        counted = site.counted.get(offer.device_class)
        if not offer.is_dra or counted is None or counted == offer.resource or _is_missing(offer, site):
            continue
        line = mapping_line(offer.device_class, offer.resource)
        says = f"counts it as {counted}, not as {offer.resource}" if counted else "does not count it"
        yield Finding(
            "device_class_not_mapped",
            Severity.ERROR,
            offer.subject,
            f"Class {offer.name} requests device class {offer.device_class}, but Kueue {says}: "
            "its workloads are never admitted.",
            # An open class keeps its resource.
            f"Replace that name in resources.deviceClassMappings of Kueue's configuration by {line} and restart Kueue, "
            f"or create a class with the resource {counted} and retire this one."
            if counted
            else f"Add {line} to resources.deviceClassMappings of Kueue's configuration and restart Kueue.",
        )


def device_class_missing(site: CheckedSite) -> Iterator[Finding]:
    for offer in site.open:
        if _is_missing(offer, site):
            yield Finding(
                "device_class_missing",
                Severity.ERROR,
                offer.subject,
                f"Class {offer.name} requests device class {offer.device_class}, which the cluster does not have: "
                "its workloads are never admitted.",
                "Install the DRA driver that creates it, or retire the class.",
            )


def selector_refused(site: CheckedSite) -> Iterator[Finding]:
    for offer in site.open:
        if offer.trial == "refused":
            what = f"The API server refuses the CEL selector of class {offer.name}: {offer.trial_text}"
        elif offer.trial == "failed":
            what = f"The CEL selector of class {offer.name} fails on a device of the cluster: {offer.trial_text}"
        else:
            continue
        text = f"{what.rstrip('.')}. Its workloads never start."
        yield Finding("selector_refused", Severity.ERROR, offer.subject, text, "Correct the selector of the class.")


def no_device_matches(site: CheckedSite) -> Iterator[Finding]:
    for offer in site.open:
        if offer.trial == "no-device" and not offer.is_autoscaled and not _is_missing(offer, site):
            yield Finding(
                "no_device_matches",
                Severity.WARNING,
                offer.subject,
                f"No device of device class {offer.device_class} matches the CEL selector of class {offer.name}: "
                "its workloads stay queued.",
                "Compare the selector with the ResourceSlices of its nodes, or check their DRA driver.",
            )


def _is_missing(offer: CheckedClass, site: CheckedSite) -> bool:
    return offer.is_dra and site.device_classes is not None and offer.device_class not in site.device_classes


def queue_limits(site: CheckedSite) -> Iterator[Finding]:
    """Checks a queue with every class, like that of a team with quota for everything."""
    if site.queues is None:
        return
    offers = [offer for offer in site.open if offer.resource]
    flavors = Counter(offer.resource for offer in offers)
    for resource, number in sorted(flavors.items()):
        if number > FLAVORS:
            yield _limit(
                f"{counted_text(number, 'class')} use {resource}; Kueue supports at most {FLAVORS} flavors per group.",
                f"Retire {number - FLAVORS}, or give them another resource name.",
            )
    if (groups := len(flavors) + PLAIN) > GROUPS:
        yield _limit(
            f"The catalog has {len(flavors)} resources, which with the queue's own is {groups} groups; "
            f"Kueue supports at most {GROUPS} per queue.",
            f"Retire the classes of {counted_text(groups - GROUPS, 'resource')}.",
        )
    if (total := len(offers) + PLAIN) > FLAVORS_OF_A_QUEUE:
        yield _limit(
            f"The catalog has {counted_text(len(offers), 'class')}, which with the queue's own flavor is {total}; "
            f"Kueue supports at most {FLAVORS_OF_A_QUEUE} per queue.",
            f"Retire {counted_text(total - FLAVORS_OF_A_QUEUE, 'class')}.",
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
