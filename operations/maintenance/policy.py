"""Which maintenance may be planned. Who may plan it: catalog.classes.policy. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from portal.core.errors import Refusal
from portal.core.plain_text import hidden_refusal
from portal.ui.text import first_names, plural

REASON_MAX = 200
NODES_MOST = 100
WINDOW_MOST = timedelta(days=30)
AHEAD_MOST = timedelta(days=365)
STUCK_MINUTES = (1, 1440)
# Resources of one node.
RESOURCES_MOST = 50
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DEVICE = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def window_refusal(holds_from: datetime, starts_at: datetime, ends_at: datetime, *, now: datetime) -> Refusal | None:
    if holds_from > starts_at:
        return Refusal("bad_period", "Enter the start of the maintenance or a time before it.", "holds_from")
    if ends_at <= max(starts_at, now):
        return Refusal("bad_period", "Enter an end in the future and after the start.", "ends_at")
    if ends_at - starts_at > WINDOW_MOST:
        return Refusal("bad_period", f"At most {WINDOW_MOST.days} days are possible from start to end.", "ends_at")
    if starts_at > now + AHEAD_MOST:
        return Refusal("bad_period", f"Enter a start within the next {AHEAD_MOST.days} days.", "starts_at")
    return None


def text_refusal(reason: str) -> Refusal | None:
    if not 1 <= len(reason) <= REASON_MAX:
        text = f"Enter 1 to {REASON_MAX} characters; the reason has {len(reason)}."
        return Refusal("bad_maintenance", text, "reason")
    return hidden_refusal("reason", reason)


def nodes_refusal(names: Collection[str], *, known: Collection[str], busy: Collection[str]) -> Refusal | None:
    """`busy`: nodes of another maintenance that has not ended."""
    if not 1 <= len(names) <= NODES_MOST:
        return Refusal("bad_maintenance", f"Choose 1 to {NODES_MOST} nodes; {len(names)} are chosen.", "nodes")
    if missing := sorted(set(names) - set(known)):
        return Refusal("bad_maintenance", f"Not in the cluster: {first_names(missing)}.", "nodes")
    if busy:
        text = f"Another maintenance of {first_names(sorted(busy))} has not ended. Wait for its end, or cancel it."
        return Refusal("in_maintenance", text, "nodes", 409)
    return None


def change_refusal(
    kind: str, *, mig_config: str, plugin_config: str, expected: Mapping[str, int], stuck_minutes: int
) -> Refusal | None:
    for field, value in (("mig_config", mig_config), ("plugin_config", plugin_config)):
        if value and not _LABEL_VALUE.fullmatch(value):
            text = f"{value[:70]} cannot be a label's value: up to 63 letters, digits, dots, dashes and underscores."
            return Refusal("bad_maintenance", text, field)
        if value and kind != "repartition":
            text = f"Only maintenance of the kind repartition sets a configuration, not {kind}."
            return Refusal("bad_maintenance", text, field)
    if len(expected) > RESOURCES_MOST:
        text = f"At most {RESOURCES_MOST} resources are possible; {len(expected)} are entered."
        return Refusal("bad_maintenance", text, "expected")
    if expected and kind != "repartition":
        text = "Nodes must offer the same devices as before after any other kind than repartition."
        return Refusal("bad_maintenance", text, "expected")
    if wrong := [name for name, number in expected.items() if not _DEVICE.fullmatch(name) or not 0 <= number <= 10_000]:
        text = f"{first_names(wrong)}: write each as RESOURCE=NUMBER, for example nvidia.com/mig-1g.10gb=28."
        return Refusal("bad_maintenance", text, "expected")
    if kind == "repartition" and not expected:
        text = "Enter the devices that each node offers afterwards, so that the result can be verified."
        return Refusal("bad_maintenance", text, "expected")
    low, high = STUCK_MINUTES
    if not low <= stuck_minutes <= high:
        return Refusal("bad_maintenance", f"Enter {low} to {plural(high, 'minute')}.", "stuck_minutes")
    return None
