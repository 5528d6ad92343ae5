"""Who may edit the catalog, which steps of the life cycle are possible, and which classes can coexist. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Scope
from catalog.discovery.dra_devices import are_disjoint, mapping_line
from portal.core.errors import Refusal
from portal.core.plain_text import hidden_refusal
from portal.ui.text import plural

# Kueue's limits for one ClusterQueue: groups (one per resource name), and flavors in a group.
GROUPS_MAX = 16
FLAVORS_MAX = 64
# Kueue's limit for one ResourceFlavor.
LABELS_MAX = 8
HOLD_REASON_MAX = 200
MESSAGE_MAX = 300

# Possible steps. A retired class can become active again, for example after nodes are repaired.
TRANSITIONS: Mapping[str, Collection[str]] = {
    "draft": ("active",),
    "active": ("retiring",),
    "retiring": ("active", "retired"),
    "retired": ("active",),
}


class Holdable(Protocol):
    """The hold fields of a class: a row, or a view of one."""

    @property
    def held_since(self) -> datetime | None: ...


class Trial(Protocol):
    """What the cluster said of a device class or selector: a row of DeviceTrial."""

    @property
    def verdict(self) -> str: ...
    @property
    def resource(self) -> str: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True)
class PeerClass:
    """Another class of the same cluster, already in the catalog."""

    slug: str
    resource: str
    node_labels: Mapping[str, str]
    device_selector: str = ""


# Slugs that are paths of other pages beside those of the classes.
RESERVED_SLUGS = frozenset({"choose", "compare", "changes"})


def slug_refusal(slug: str) -> Refusal | None:
    if slug not in RESERVED_SLUGS:
        return None
    return Refusal(
        "reserved", f"/catalog/{slug} is a page of the catalog itself; choose another name for the class.", "slug"
    )


def may_edit(by: Actor) -> Refusal | None:
    if refusal := scope_refusal(by, Scope.ADMIN):
        return refusal
    if by.operates:
        return None
    return Refusal("not_allowed", "Only operators and administrators can change the catalog.", status=403)


def is_held(gpu_class: Holdable) -> bool:
    """Scheduling is paused: nothing new is admitted; runs continue."""
    return gpu_class.held_since is not None


def hold_refusal(
    *, name: str, life_cycle: str, reason: str, until: datetime | None, now: datetime, is_storage: bool = False
) -> Refusal | None:
    if is_storage:
        return Refusal(
            "storage",
            f"{name} is storage: workloads are not scheduled on it, so there is nothing to pause.",
            status=409,
        )
    if life_cycle not in ("active", "retiring"):
        return Refusal(
            "not_open", f"{name} is {life_cycle}: no workloads start on it, so there is nothing to pause.", status=409
        )
    if not 1 <= len(reason) <= HOLD_REASON_MAX:
        text = f"Enter a reason of 1 to {HOLD_REASON_MAX} characters; it is shown to all users with queued workloads."
        return Refusal("reason_missing", text, "reason")
    if refusal := hidden_refusal("reason", reason):
        return refusal
    if until is not None and until <= now:
        return Refusal("bad_period", "Enter an expected end in the future, or leave it empty.", "until")
    return None


def release_refusal(*, name: str, is_held: bool) -> Refusal | None:
    if is_held:
        return None
    return Refusal("not_held", f"Scheduling of {name} is not paused; there is nothing to resume.", status=409)


@dataclass(frozen=True)
class Successor:
    """The class that a retiring class names. `life_cycle` is "" if no class has that name."""

    slug: str
    life_cycle: str


def retire_refusal(
    slug: str, *, successor: Successor | None, message: str, runs_until: datetime | None, now: datetime
) -> Refusal | None:
    if successor is not None and successor.slug == slug:
        return Refusal(
            "bad_successor", f"{slug} cannot be its own successor; enter another class, or none.", "successor"
        )
    if successor is not None and successor.life_cycle != "active":
        is_what = (
            f"{successor.slug} is {successor.life_cycle}" if successor.life_cycle else "There is no class of this name"
        )
        return Refusal("bad_successor", f"{is_what}; enter an active class of this cluster.", "successor")
    if len(message) > MESSAGE_MAX:
        return Refusal(
            "bad_message", f"Enter at most {MESSAGE_MAX} characters; the message has {len(message)}.", "message"
        )
    if refusal := hidden_refusal("message", message):
        return refusal
    if runs_until is not None and runs_until <= now:
        text = "Enter a time in the future until which workloads may run, or leave it empty for no end."
        return Refusal("bad_period", text, "runs_until")
    return None


@dataclass(frozen=True)
class ClassCommitments:
    """What a class is still committed to: units granted to teams, until when, and runs that have not ended."""

    teams: int
    units: int
    until: datetime | None
    runs: int
    unit: str = "unit"


def close_refusal(name: str, claims: ClassCommitments) -> Refusal | None:
    """A retired class has no quota and no runs: retiring it earlier would remove them without notice."""
    left = []
    if claims.units:
        last = f" until {claims.until:%d %b %Y}" if claims.until else ""
        left.append(f"{plural(claims.units, claims.unit)} granted to {plural(claims.teams, 'team')}{last}")
    if claims.runs:
        left.append(f"{plural(claims.runs, 'run')} not ended")
    if not left:
        return None
    text = (
        f"{name} cannot be closed yet: {' and '.join(left)}. Set an end time for runs, and wait until the grants "
        "expire or ask the teams to return them."
    )
    return Refusal("orphans_grants" if claims.units else "orphans_runs", text, "life_cycle", status=409)


def dismiss_refusal(*, reason: str) -> Refusal | None:
    if 1 <= len(reason) <= HOLD_REASON_MAX:
        return hidden_refusal("reason", reason)
    text = f"Enter a reason of 1 to {HOLD_REASON_MAX} characters for not offering it; other operators read it."
    return Refusal("reason_missing", text, "reason")


def may_move(slug: str, *, before: str, to: str) -> Refusal | None:
    if to in TRANSITIONS.get(before, ()):
        return None
    text = f"{slug} is {before}; it cannot become {to} from there. Possible: {', '.join(TRANSITIONS.get(before, ()))}."
    return Refusal("bad_step", text, "life_cycle", status=409)


def selector_refusal(one: PeerClass, others: Collection[PeerClass], *, has_topology: bool) -> Refusal | None:
    """Refuses if the scheduler and Kueue could not distinguish this class from the others.

    Of two classes with the same resource name, neither's node labels may contain the other's: a pod of the wider class
    could run on a node of the narrower one, charged to the wrong quota.
    """
    if has_topology and not one.node_labels:
        return Refusal("no_labels", "Enter the node labels that select the nodes of this class.", "node_labels")
    if len(one.node_labels) > LABELS_MAX:
        return Refusal("many_labels", f"Enter at most {LABELS_MAX} node labels.", "node_labels")
    for other in others:
        if other.resource != one.resource or not one.resource or other.slug == one.slug:
            continue
        if one.device_selector and other.device_selector and are_disjoint(one.device_selector, other.device_selector):
            # A claim takes only devices that its selector matches, on whichever node.
            continue
        mine, theirs = one.node_labels.items(), other.node_labels.items()
        if mine <= theirs or theirs <= mine:
            text = (
                f"{one.slug} and {other.slug} both use {one.resource}, and a node of one matches the labels "
                "of the other. Add a label that distinguishes their nodes."
            )
            return Refusal("selector_overlaps", text, "node_labels")
    return None


def queue_refusal(one: PeerClass, others: Collection[PeerClass]) -> Refusal | None:
    """Refuses if a team with quota for every class would no longer fit into one ClusterQueue."""
    by_resource: dict[str, set[str]] = {}
    for neighbour in (one, *others):
        if neighbour.resource:
            by_resource.setdefault(neighbour.resource, set()).add(neighbour.slug)
    if len(by_resource) > GROUPS_MAX:
        text = (
            f"A ClusterQueue supports at most {GROUPS_MAX} resource names; this class would make it {len(by_resource)}."
        )
        return Refusal("too_many_resources", text, "resource")
    if one.resource and len(by_resource[one.resource]) > FLAVORS_MAX:
        return Refusal("too_many_classes", f"At most {FLAVORS_MAX} classes can use one resource name.", "resource")
    return None


def device_refusal(
    *, device_class: str, resource: str, counted: Trial | None, selected: Trial | None
) -> Refusal | None:
    """Whether a DRA class can be opened, by what the cluster said of its device class (`counted`) and of its selector.
    What is not known refuses nothing.
    """
    if selected is not None and selected.verdict == "refused":
        return Refusal("bad_cel", f"The API server refuses the CEL selector: {selected.text}", "device_selector")
    if selected is not None and selected.verdict == "failed":
        text = f"The CEL selector fails on a device of the cluster: {selected.text}"
        return Refusal("bad_cel", text, "device_selector")
    if counted is not None and counted.verdict == "not-counted":
        line = mapping_line(device_class, resource)
        text = (
            f"Kueue does not count device class {device_class}, so workloads would never start: add {line} to "
            "resources.deviceClassMappings of its configuration and restart it."
        )
        return Refusal("not_counted", text, "device_class")
    if counted is not None and counted.verdict == "counted" and counted.resource != resource:
        text = (
            f"Kueue counts device class {device_class} as {counted.resource}, not as {resource}: enter that resource."
        )
        return Refusal("not_counted", text, "resource")
    return None
