"""Where the slices of a MIG GPU lie: profiles and their numbers → boxes on the GPU's memory slices, and which part of
the GPU each instance takes beside the others. Pure.

A name that fits no known profile of the GPU is not drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from catalog.discovery.mig_profiles import MigCard, MigProfile, profile_of, share_of


@dataclass(frozen=True)
class MigInstance:
    """One instance: `memory` slices from `start` on."""

    profile: str
    start: int
    memory: int
    compute: int


MigLayout = tuple[MigInstance, ...]


def card_layout(card: MigCard, counts: Mapping[str, int]) -> MigLayout | None:
    """Converts profiles of one GPU to boxes from left to right; None if they do not fit, or a name is unknown."""
    shapes = {profile: profile_of(profile, card) for profile, count in counts.items() if count > 0}
    known = {profile: shape for profile, shape in shapes.items() if shape is not None}
    if len(known) < len(shapes) or any(counts[profile] > shape.most for profile, shape in known.items()):
        return None
    if not has_engines(card, [shape for profile, shape in known.items() for _ in range(counts[profile])]):
        return None
    wanted = [
        (profile, shape)
        for profile, shape in sorted(known.items(), key=lambda item: (-item[1].memory, len(item[1].starts), item[0]))
        for _ in range(counts[profile])
    ]
    placed = _placed(wanted, taken=frozenset())
    return None if placed is None else tuple(sorted(placed, key=lambda box: box.start))


def has_engines(card: MigCard, instances: Sequence[MigProfile]) -> bool:
    """Whether the media engines suffice: a GPU has one optical flow engine, and an instance takes its decoders from
    those of the GPU.
    """
    has_one_ofa = sum(shape.has_ofa for shape in instances) <= 1
    return has_one_ofa and sum(shape.decoders for shape in instances) <= card.decoders


def node_layout(card: MigCard, counts: Mapping[str, int], cards: int) -> tuple[MigLayout, ...] | None:
    """Converts profiles of a whole node to one possible layout per GPU, evenly spread; None if none is found.

    The cluster reports how many slices of each profile a node has, not on which GPU they are.
    """
    shapes = {profile: profile_of(profile, card) for profile in counts}
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


def fractions_by_layout(card: MigCard, counts: Mapping[str, int], cards: int = 1) -> dict[str, Fraction] | None:
    """By profile, the part of a GPU that an instance takes on GPUs with exactly these instances.

    The larger shares of compute and memory add up to one or a little more on a full GPU. They are reduced in
    proportion, so that the instances of a full GPU are one GPU, exactly. On a GPU that is not full, an instance takes
    its larger share, and the rest belongs to none.

    None if the instances do not fit, or if the GPUs are not equally full and one of them would be more than a GPU: then
    a profile has no fraction that is right on each.
    """
    layouts = node_layout(card, counts, cards)
    if layouts is None:
        return None
    shares = {profile: share_of(profile, card) or Fraction(0) for profile in counts}
    sums = {sum((shares[box.profile] for box in boxes), Fraction(0)) for boxes in layouts}
    most = max([Fraction(1), *sums])
    if most > 1 and len(sums) > 1:
        return None
    return {profile: share / most for profile, share in shares.items()}


def free_slices(card: MigCard, boxes: Iterable[MigInstance]) -> tuple[int, ...]:
    """Memory slices that belong to no instance."""
    held = {slice_ for box in boxes for slice_ in range(box.start, box.start + box.memory)}
    return tuple(slice_ for slice_ in range(card.memory_slices) if slice_ not in held)


def _memory(shape: MigProfile | None) -> int:
    return shape.memory if shape else 0


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
