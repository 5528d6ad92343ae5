"""Where the slices of a MIG GPU lie, for drawing: profiles and their numbers → boxes on the GPU's memory slices.

Pure. A GPU has 8 memory slices and 7 compute slices (A30: 4 and 4); a profile may begin only at certain memory slices.
Names are read from nodes and only interpreted here: what a name means on this GPU follows from the GPU's memory. A
name that fits no known shape is not drawn. From NVIDIA's MIG user guide, "Supported MIG Profiles".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_PROFILE = re.compile(r"(?P<compute>\d)g\.(?P<gib>\d+)gb(?P<media>[.+]me)?")
_FOUR = re.compile(r"\bA30\b")
_EIGHT = re.compile(r"\b(A100|H100|H200|H20|GH200)\b")
# The same shape is assumed: no measured list of placements is public.
_ASSUMED = re.compile(r"\b(G?B[23]00)\b")
_GIB_IN_NAME = re.compile(r"\b(\d+)GB\b")


@dataclass(frozen=True)
class MigCard:
    """`is_assumed`: drawn like its predecessors, because its placements are not published."""

    memory_slices: int
    compute_slices: int
    memory_gib: float
    is_assumed: bool = False


@dataclass(frozen=True)
class MigProfile:
    """`starts`: memory slices at which an instance may begin; `most`: instances on one GPU."""

    compute: int
    memory: int
    starts: tuple[int, ...]
    most: int


@dataclass(frozen=True)
class MigInstance:
    """One instance: `memory` slices from `start` on."""

    profile: str
    start: int
    memory: int
    compute: int


MigLayout = tuple[MigInstance, ...]

# By compute slices, memory slices, and whether it has the media engines.
_SHAPES: Mapping[int, Mapping[tuple[int, int, bool], MigProfile]] = {
    8: {
        (1, 1, False): MigProfile(1, 1, tuple(range(7)), 7),
        (1, 1, True): MigProfile(1, 1, tuple(range(7)), 1),
        (1, 2, False): MigProfile(1, 2, (0, 2, 4, 6), 4),
        (2, 2, False): MigProfile(2, 2, (0, 2, 4), 3),
        (3, 4, False): MigProfile(3, 4, (0, 4), 2),
        (4, 4, False): MigProfile(4, 4, (0,), 1),
        (7, 8, False): MigProfile(7, 8, (0,), 1),
    },
    4: {
        (1, 1, False): MigProfile(1, 1, tuple(range(4)), 4),
        (1, 1, True): MigProfile(1, 1, tuple(range(4)), 1),
        (2, 2, False): MigProfile(2, 2, (0, 2), 2),
        (2, 2, True): MigProfile(2, 2, (0, 2), 1),
        (4, 4, False): MigProfile(4, 4, (0,), 1),
    },
}


def card_of(product: str, memory_mib: int | None) -> MigCard | None:
    """Returns None for a GPU without MIG, one of another family, or one whose memory is unknown.

    `memory_mib`: of the whole GPU. If a node reports only instances, the product's name may give it.
    """
    words = product.replace("-", " ")
    named = _GIB_IN_NAME.search(words)
    gib = memory_mib / 1024 if memory_mib else float(named[1]) if named else None
    if gib is None:
        return None
    if _FOUR.search(words):
        return MigCard(4, 4, gib)
    if _EIGHT.search(words):
        return MigCard(8, 7, gib)
    return MigCard(8, 7, gib, is_assumed=True) if _ASSUMED.search(words) else None


def shape_of(profile: str, card: MigCard) -> MigProfile | None:
    """Returns the meaning of a profile name on this GPU: 1g.10gb is one memory slice of 80 GiB, and two of 40."""
    found = _PROFILE.fullmatch(profile)
    if found is None:
        return None
    memory = round(int(found["gib"]) * card.memory_slices / card.memory_gib)
    return _SHAPES[card.memory_slices].get((int(found["compute"]), memory, bool(found["media"])))


def card_layout(card: MigCard, counts: Mapping[str, int]) -> MigLayout | None:
    """Converts profiles of one GPU to boxes from left to right; None if they do not fit, or a name is unknown."""
    shapes = {profile: shape_of(profile, card) for profile, count in counts.items() if count > 0}
    known = {profile: shape for profile, shape in shapes.items() if shape is not None}
    if len(known) < len(shapes) or any(counts[profile] > shape.most for profile, shape in known.items()):
        return None
    # Only one instance can have the media engines of a GPU.
    if sum(counts[profile] for profile in known if _has_media(profile)) > 1:
        return None
    wanted = [
        (profile, shape)
        for profile, shape in sorted(known.items(), key=lambda item: (-item[1].memory, len(item[1].starts), item[0]))
        for _ in range(counts[profile])
    ]
    placed = _placed(wanted, taken=frozenset())
    return None if placed is None else tuple(sorted(placed, key=lambda box: box.start))


def node_layout(card: MigCard, counts: Mapping[str, int], cards: int) -> tuple[MigLayout, ...] | None:
    """Converts profiles of a whole node to one possible layout per GPU, evenly spread; None if none is found.

    The cluster reports how many slices of each profile a node has, not on which GPU they are.
    """
    shapes = {profile: shape_of(profile, card) for profile in counts}
    if any(shape is None for shape in shapes.values()):
        return None
    on_card: list[dict[str, int]] = [{} for _ in range(cards)]
    for profile in sorted(counts, key=lambda name: (-_memory(shapes[name]), name)):
        for _ in range(counts[profile]):
            chosen = next(
                (
                    one
                    for one in sorted(
                        on_card, key=lambda one: sum(_memory(shapes[name]) * n for name, n in one.items())
                    )
                    if card_layout(card, {**one, profile: one.get(profile, 0) + 1}) is not None
                ),
                None,
            )
            if chosen is None:
                return None
            chosen[profile] = chosen.get(profile, 0) + 1
    return tuple(card_layout(card, one) or () for one in on_card)


def free_slices(card: MigCard, boxes: Iterable[MigInstance]) -> tuple[int, ...]:
    """Memory slices that belong to no instance."""
    held = {slice_ for box in boxes for slice_ in range(box.start, box.start + box.memory)}
    return tuple(slice_ for slice_ in range(card.memory_slices) if slice_ not in held)


def _memory(shape: MigProfile | None) -> int:
    return shape.memory if shape else 0


def _has_media(profile: str) -> bool:
    found = _PROFILE.fullmatch(profile)
    return bool(found and found["media"])


def _placed(
    wanted: Sequence[tuple[str, MigProfile]], *, taken: frozenset[int], after: int = -1
) -> list[MigInstance] | None:
    """`after`: start of the previous instance of the same profile: equal instances are tried in one order only."""
    if not wanted:
        return []
    (profile, shape), rest = wanted[0], wanted[1:]
    for start in shape.starts:
        slices = frozenset(range(start, start + shape.memory))
        if start <= after or slices & taken:
            continue
        again = start if rest and rest[0][0] == profile else -1
        others = _placed(rest, taken=taken | slices, after=again)
        if others is not None:
            return [MigInstance(profile, start, shape.memory, shape.compute), *others]
    return None
