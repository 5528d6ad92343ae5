"""Who may edit the catalog, which steps of the life cycle are possible, and which classes can coexist. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Scope
from portal.core.errors import Refusal
from portal.ui.text import plural

# Kueue's limits for one ClusterQueue: groups (one per resource name), and flavors in a group.
GROUPS_MAX = 16
FLAVORS_MAX = 64
# A ResourceFlavor's.
LABELS_MAX = 8
HOLD_REASON_MAX = 200
MESSAGE_MAX = 300

# From where to where a class may go. A retired class may come back: nodes are repaired.
TRANSITIONS: Mapping[str, Collection[str]] = {
    "draft": ("active",),
    "active": ("retiring",),
    "retiring": ("active", "retired"),
    "retired": ("active",),
}


class Holdable(Protocol):
    """What a class says about its own hold: a row, or a view of one."""

    @property
    def held_since(self) -> datetime | None: ...


@dataclass(frozen=True)
class PeerClass:
    """A class of the same cluster that is in the catalog already."""

    slug: str
    resource: str
    node_labels: Mapping[str, str]


# Pages beside those of the classes, under the same address.
RESERVED_SLUGS = frozenset({"choose", "compare", "changes"})


def slug_refusal(slug: str) -> Refusal | None:
    if slug not in RESERVED_SLUGS:
        return None
    return Refusal("reserved", f"/catalog/{slug} is a page of the catalog itself; give the class another name.", "slug")


def may_edit(by: Actor) -> Refusal | None:
    if refusal := scope_refusal(by, Scope.ADMIN):
        return refusal
    if by.operates:
        return None
    return Refusal("not_allowed", "Only operators and administrators change the catalog.", status=403)


def is_held(gpu_class: Holdable) -> bool:
    """Nothing new is admitted to it; what runs goes on."""
    return gpu_class.held_since is not None


def hold_refusal(
    *, name: str, life_cycle: str, reason: str, until: datetime | None, now: datetime, is_storage: bool = False
) -> Refusal | None:
    if is_storage:
        return Refusal("storage", f"{name} is storage: nothing is admitted to it, so it cannot be held.", status=409)
    if life_cycle not in ("active", "retiring"):
        return Refusal("not_open", f"{name} is {life_cycle}: nothing starts on it anyway.", status=409)
    if not 1 <= len(reason) <= HOLD_REASON_MAX:
        text = f"Say for what it is held, in up to {HOLD_REASON_MAX} characters; everybody who waits reads it."
        return Refusal("reason_missing", text, "reason")
    if until is not None and until <= now:
        return Refusal("bad_period", "The expected end lies in the future, or is left empty.", "until")
    return None


def release_refusal(*, name: str, is_held: bool) -> Refusal | None:
    if is_held:
        return None
    return Refusal("not_held", f"{name} is not held; there is nothing to release.", status=409)


@dataclass(frozen=True)
class Successor:
    """The class that a retiring one names. `life_cycle` "" where there is none of that name."""

    slug: str
    life_cycle: str


def retire_refusal(
    slug: str, *, successor: Successor | None, message: str, runs_until: datetime | None, now: datetime
) -> Refusal | None:
    if successor is not None and successor.slug == slug:
        return Refusal("bad_successor", f"{slug} cannot succeed itself; name another class, or none.", "successor")
    if successor is not None and successor.life_cycle != "active":
        is_what = f"{successor.slug} is {successor.life_cycle}" if successor.life_cycle else "There is no such class"
        return Refusal("bad_successor", f"{is_what}; a successor is an active class of this cluster.", "successor")
    if len(message) > MESSAGE_MAX:
        return Refusal(
            "bad_message", f"A message has at most {MESSAGE_MAX} characters; yours {len(message)}.", "message"
        )
    if runs_until is not None and runs_until <= now:
        text = "What runs may go on until a moment in the future; leave it empty for no end."
        return Refusal("bad_period", text, "runs_until")
    return None


@dataclass(frozen=True)
class ClassCommitments:
    """What a class still owes: units that teams were promised, until when, and runs that have not ended."""

    teams: int
    units: int
    until: datetime | None
    runs: int
    unit: str = "unit"


def close_refusal(name: str, claims: ClassCommitments) -> Refusal | None:
    """A retired class gives nothing: who was promised some, or runs on it, would lose it without a word."""
    left = []
    if claims.units:
        last = f" until {claims.until:%d %b %Y}" if claims.until else ""
        left.append(f"{plural(claims.units, claims.unit)} promised to {plural(claims.teams, 'team')}{last}")
    if claims.runs:
        left.append(f"{plural(claims.runs, 'run')} not ended")
    if not left:
        return None
    text = (
        f"{name} cannot be retired yet: {' and '.join(left)}. Set a date for what runs, and wait for the grants' end "
        "or ask the teams to give them back."
    )
    return Refusal("orphans_grants" if claims.units else "orphans_runs", text, "life_cycle", status=409)


def dismiss_refusal(*, reason: str) -> Refusal | None:
    if 1 <= len(reason) <= HOLD_REASON_MAX:
        return None
    text = f"Say in up to {HOLD_REASON_MAX} characters why it is not offered; colleagues will ask."
    return Refusal("reason_missing", text, "reason")


def may_move(slug: str, *, before: str, to: str) -> Refusal | None:
    if to in TRANSITIONS.get(before, ()):
        return None
    text = f"{slug} is {before}; from there it cannot become {to}. Possible: {', '.join(TRANSITIONS.get(before, ()))}."
    return Refusal("bad_step", text, "life_cycle", status=409)


def selector_refusal(one: PeerClass, others: Collection[PeerClass], *, has_topology: bool) -> Refusal | None:
    """Would the scheduler and Kueue still tell this class from the others?

    Of two classes with the same resource name, neither's node labels may contain the other's: a pod of the wider one
    could land on a node of the narrower, charged to the wrong quota.
    """
    if has_topology and not one.node_labels:
        return Refusal("no_labels", "Say by which node labels the nodes of this class are found.", "node_labels")
    if len(one.node_labels) > LABELS_MAX:
        return Refusal("many_labels", f"A class selects nodes by at most {LABELS_MAX} labels.", "node_labels")
    for other in others:
        if other.resource != one.resource or not one.resource or other.slug == one.slug:
            continue
        mine, theirs = one.node_labels.items(), other.node_labels.items()
        if mine <= theirs or theirs <= mine:
            text = (
                f"{one.slug} and {other.slug} are both counted as {one.resource}, and a node of one matches the labels "
                "of the other. Add a label that tells their nodes apart."
            )
            return Refusal("selector_overlaps", text, "node_labels")
    return None


def queue_refusal(one: PeerClass, others: Collection[PeerClass]) -> Refusal | None:
    """Would a tenant who has some of everything still fit into one ClusterQueue?"""
    by_resource: dict[str, set[str]] = {}
    for neighbour in (one, *others):
        if neighbour.resource:
            by_resource.setdefault(neighbour.resource, set()).add(neighbour.slug)
    if len(by_resource) > GROUPS_MAX:
        text = f"A queue counts at most {GROUPS_MAX} resource names; this would be number {len(by_resource)}."
        return Refusal("too_many_resources", text, "resource")
    if one.resource and len(by_resource[one.resource]) > FLAVORS_MAX:
        return Refusal("too_many_classes", f"At most {FLAVORS_MAX} classes share one resource name.", "resource")
    return None
