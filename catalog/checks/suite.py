"""All standing checks, in the order in which their findings are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from catalog.checks import interconnect, profile, queues
from catalog.checks import nodes as check_nodes
from catalog.checks.classes import (
    class_without_nodes,
    exclusive_on_shared,
    label_contradicts_class,
    many_time_slices,
    resource_not_offered,
    same_capacity,
    selector_is_part,
    slices_not_offered,
    unlike_interconnects,
    unlike_products,
)
from catalog.checks.types import CheckedSite, Finding, Severity

Check = Callable[[CheckedSite], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    class_without_nodes,
    resource_not_offered,
    slices_not_offered,
    label_contradicts_class,
    exclusive_on_shared,
    many_time_slices,
    unlike_products,
    unlike_interconnects,
    same_capacity,
    selector_is_part,
    queues.resource_not_covered,
    queues.device_class_not_mapped,
    queues.device_class_missing,
    queues.selector_refused,
    queues.no_device_matches,
    queues.queue_limits,
    check_nodes.layout_not_named,
    check_nodes.mig_invalid,
    check_nodes.mig_state,
    check_nodes.unhealthy_devices,
    check_nodes.no_devices_left,
    check_nodes.plugin_advertises_none,
    check_nodes.nothing_advertised,
    check_nodes.no_taint,
    check_nodes.too_many_profiles,
    interconnect.unlike_links,
    interconnect.slow_links,
    interconnect.old_measurement,
    profile.site_profile,
    profile.storage_class_missing,
)


def check_site(site: CheckedSite) -> tuple[Finding, ...]:
    """Worst first, then by check and subject: the same site gives the same list, whatever the order of the input."""
    found = [finding for one in CHECKS for finding in one(site)]
    order = list(Severity)
    return tuple(sorted(found, key=lambda one: (order.index(one.severity), one.code, one.subject, one.sentence)))
