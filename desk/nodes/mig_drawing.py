"""MIG GPUs of a node as drawings: slices as boxes, and how many are in use. Values in, values out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from catalog.discovery import mig_placement, mig_profiles, vendors
from catalog.mig.planning import MigPlan
from cluster.reads.observed import Node
from portal.ui.text import plural

WIDTH, ROW = 180, 26
WHOLE = "nvidia.com/gpu"
_ONE_PROFILE = re.compile(r"(?P<product>.+)-MIG-(?P<profile>\d.*)")
_UNKNOWN_SHAPE = "These slices are not drawn: their placement on this GPU is unknown."
_ONE_OF_MANY = "The cluster reports how many slices are in use, not which ones. This is one possible arrangement."
_ASSUMED = "The slice placement of this product is assumed from its predecessors."


class SliceState(Enum):
    """State of one slice, named like its CSS class (`.mig-<value>` in portal.css). NONE: there is no slice."""

    YOURS = "yours"
    USED = "in-use"
    FREE = "free"
    NONE = "none"
    UNKNOWN = "unknown"


# The text beside the profile of a slice.
STATE_WORDS = {SliceState.YOURS: "your team", SliceState.USED: "in use", SliceState.FREE: "free"}


@dataclass(frozen=True)
class SliceBox:
    """One slice, or an empty place, starting at `y`."""

    y: int
    height: int
    middle: int
    text: str
    state: SliceState

    @property
    def look(self) -> str:
        return self.state.value


@dataclass(frozen=True)
class CardDrawing:
    title: str
    text: str
    boxes: tuple[SliceBox, ...]


@dataclass(frozen=True)
class MigNode:
    """`cards` empty: not drawn. `listed`: the same as text."""

    node: str
    cards: tuple[CardDrawing, ...]
    width: int
    height: int
    listed: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Profile:
    """A profile on one node: number of slices and how many are in use; None for shared slices, where it is unknown."""

    count: int
    used: int | None
    yours: int


def mig_node(node: Node, *, used: Mapping[str, int], yours: Mapping[str, int]) -> MigNode | None:
    """Returns None for a node without slices. `used`, `yours`: units by resource of pods that are bound to it."""
    found = _ONE_PROFILE.fullmatch(node.labels.get("nvidia.com/gpu.product", "").removesuffix("-SHARED"))
    if found is not None:
        profiles = {found["profile"]: _profile(node, WHOLE, "gpu", used, yours)}
        card = mig_profiles.card_of(found["product"])
        cards = _fewest(card, profiles)
    else:
        names = vendors.mig_counts(node.labels)
        profiles = {name: _profile(node, f"nvidia.com/mig-{name}", f"mig-{name}", used, yours) for name in names}
        card = mig_profiles.card_of(node.labels.get("nvidia.com/gpu.product", ""), _number(node, "gpu.memory"))
        cards = vendors.mig_gpus(node.labels, node.allocatable)
    profiles = {name: one for name, one in profiles.items() if one.count}
    if not profiles:
        return None
    listed = ", ".join(_listed(name, one) for name, one in profiles.items())
    counts = {name: one.count for name, one in profiles.items()}
    layouts = mig_placement.node_layout(card, counts, cards) if card is not None and cards > 0 else None
    if card is None or layouts is None:
        return MigNode(node.name, (), WIDTH, 0, listed, (_UNKNOWN_SHAPE,))
    states = {name: _states(one) for name, one in profiles.items()}
    drawn = tuple(_drawing(card, boxes, number, states) for number, boxes in enumerate(layouts, start=1))
    notes = (_ONE_OF_MANY, _ASSUMED) if card.is_assumed else (_ONE_OF_MANY,)
    return MigNode(node.name, drawn, WIDTH, ROW * card.memory_slices, listed, notes)


def planned_cards(card: mig_profiles.MigCard, plan: MigPlan) -> MigNode:
    """The GPUs of a plan; the instances that the demand needs are drawn first, and what is beyond it as spare."""
    needed = Counter(plan.served)
    drawn: list[CardDrawing] = []
    for layout, number in plan.layouts:
        for _ in range(number):
            drawn.append(_planned(card, layout, f"GPU {len(drawn)}", needed))
    notes = (_ASSUMED,) if card.is_assumed else ()
    return MigNode("", tuple(drawn), WIDTH, ROW * card.memory_slices, "", notes)


def _planned(
    card: mig_profiles.MigCard, layout: mig_placement.MigLayout, title: str, needed: Counter[str]
) -> CardDrawing:
    """Takes the instances that it draws as needed from `needed`."""
    boxes, spoken = [], []
    for box in layout:
        is_needed = needed[box.profile] > 0
        needed[box.profile] -= is_needed
        text = box.profile if is_needed else f"{box.profile} · spare"
        boxes.append(_box(box.start, box.memory, text, SliceState.USED if is_needed else SliceState.FREE))
        spoken.append(text)
    boxes += [_box(start, 1, "no slice", SliceState.NONE) for start in mig_placement.free_slices(card, layout)]
    return CardDrawing(title, ", ".join(spoken), tuple(sorted(boxes, key=lambda one: one.y)))


def _profile(node: Node, resource: str, label: str, used: Mapping[str, int], yours: Mapping[str, int]) -> _Profile:
    count = _number(node, f"{label}.count") or 0
    if node.labels.get(f"nvidia.com/{label}.sharing-strategy", "none") != "none":
        return _Profile(count, None, 0)
    return _Profile(count, used.get(resource, 0), yours.get(resource, 0))


def _fewest(card: mig_profiles.MigCard | None, profiles: Mapping[str, _Profile]) -> int:
    """Returns the lowest number of GPUs that hold these slices. With strategy single a node reports only slices."""
    total = 0
    for name, one in profiles.items():
        shape = mig_profiles.profile_of(name, card) if card is not None else None
        total += -(-one.count // shape.most) if shape is not None else 0
    return total


def _listed(name: str, one: _Profile) -> str:
    if one.used is None:
        return f"{one.count} × {name}, shared"
    yours = f", {one.yours} of your team" if one.yours else ""
    return f"{one.count} × {name} ({one.used} in use{yours})"


def _states(one: _Profile) -> list[SliceState]:
    if one.used is None:
        return [SliceState.UNKNOWN] * one.count
    found = [SliceState.YOURS] * one.yours + [SliceState.USED] * (one.used - one.yours)
    return [*found, *[SliceState.FREE] * one.count][: one.count]


def _drawing(
    card: mig_profiles.MigCard, boxes: mig_placement.MigLayout, number: int, states: dict[str, list[SliceState]]
) -> CardDrawing:
    """Consumes the states that it draws from `states`."""
    drawn, spoken = [], []
    for box in boxes:
        state = states[box.profile].pop(0)
        told = [box.profile, *([STATE_WORDS[state]] if state in STATE_WORDS else [])]
        spoken.append(" ".join(told))
        drawn.append(_box(box.start, box.memory, " · ".join(told), state))
    free = mig_placement.free_slices(card, boxes)
    drawn += [_box(start, 1, "no slice", SliceState.NONE) for start in free]
    left = f"; {plural(len(free), 'memory slice')} without a MIG slice" if free else ""
    text = ", ".join(spoken) or "no slice"
    return CardDrawing(f"GPU {number}", f"{text}{left}", tuple(sorted(drawn, key=lambda one: one.y)))


def _box(start: int, memory: int, text: str, state: SliceState) -> SliceBox:
    return SliceBox(start * ROW, memory * ROW, start * ROW + memory * ROW // 2, text, state)


def _number(node: Node, label: str) -> int | None:
    text = node.labels.get(f"nvidia.com/{label}", "")
    return int(text) if text.isdigit() else None
