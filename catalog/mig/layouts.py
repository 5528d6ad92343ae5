"""Every layout that one GPU can have, and why a combination of profiles is none. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from catalog.discovery.mig_placement import MigInstance, MigLayout, card_layout, has_engines
from catalog.discovery.mig_profiles import MigCard, MigProfile


def arrangements(card: MigCard, profiles: Mapping[str, MigProfile]) -> Iterator[MigLayout]:
    """Every set of instances that lie on the GPU side by side, each from left to right. Several thousand for a GPU of
    eight slices; the empty one is excluded.
    """
    boxes = sorted(
        (
            MigInstance(name, start, shape.memory, shape.compute)
            for name, shape in profiles.items()
            for start in shape.starts
        ),
        key=lambda box: (box.start, box.profile),
    )
    open_ends: list[tuple[MigLayout, int]] = [((), 0)]
    while open_ends:
        placed, first_free = open_ends.pop()
        for box in boxes:
            if box.start < first_free:
                continue
            larger = (*placed, box)
            if _is_allowed(card, profiles, larger):
                yield larger
                open_ends.append((larger, box.start + box.memory))


def layouts(card: MigCard, profiles: Mapping[str, MigProfile]) -> tuple[MigLayout, ...]:
    """Each combination of profiles once, in the arrangement with the leftmost instances; sorted by profiles.

    MIG tools are told how many instances of each profile a GPU shall have; the driver chooses the places.
    """
    found: dict[tuple[str, ...], MigLayout] = {}
    for one in arrangements(card, profiles):
        key = tuple(sorted(box.profile for box in one))
        found[key] = min(found.get(key, one), one, key=_places)
    return tuple(found[key] for key in sorted(found))


def full_layouts(card: MigCard, profiles: Mapping[str, MigProfile]) -> tuple[MigLayout, ...]:
    """Those beside which no instance of any profile fits."""
    every = layouts(card, profiles)
    known = {profiles_of(one) for one in every}
    return tuple(
        one for one in every if not any(tuple(sorted((*profiles_of(one), name))) in known for name in profiles)
    )


def profiles_of(layout: MigLayout) -> tuple[str, ...]:
    return tuple(sorted(box.profile for box in layout))


def misfit(card: MigCard, profiles: Mapping[str, MigProfile], counts: Mapping[str, int]) -> str:
    """Why these instances do not fit on one GPU together, as a sentence; "" if they do."""
    unknown = [name for name in counts if name not in profiles]
    if unknown:
        return f"This GPU has no profile {' and no profile '.join(unknown)}. It has {', '.join(sorted(profiles))}."
    if not any(count > 0 for count in counts.values()) or card_layout(card, counts) is not None:
        return ""
    fitting: Counter[str] = Counter()
    order = sorted(counts, key=lambda name: (-profiles[name].memory, len(profiles[name].starts), name))
    for name in [one for one in order for _ in range(counts[one])]:
        if card_layout(card, fitting + Counter([name])) is None:
            return _why_not(card, profiles, fitting, name)
        fitting[name] += 1
    return ""


def _why_not(card: MigCard, profiles: Mapping[str, MigProfile], fitting: Counter[str], name: str) -> str:
    shape = profiles[name]
    if fitting[name] == shape.most:
        return f"{name} fits at most {shape.most} × on one GPU."
    beside = card_layout(card, fitting) or ()
    placed = " and ".join(f"{box.profile} at {_span(box.start, box.memory)}" for box in beside)
    if card_layout(_without_engines(card), fitting + Counter([name])) is not None:
        return f"{name} does not fit beside {' and '.join(fitting)}: the GPU has too few media engines for both."
    places = " or ".join(_span(start, shape.memory) for start in shape.starts)
    return f"{name} needs memory slices {places}, and none of these places is free beside {placed}."


def _without_engines(card: MigCard) -> MigCard:
    """The same GPU, if instances took no media engines: what does not fit on it lacks memory slices."""
    return replace(card, profiles={key: replace(one, decoders=0, has_ofa=False) for key, one in card.profiles.items()})


def _span(start: int, memory: int) -> str:
    return str(start) if memory == 1 else f"{start}–{start + memory - 1}"


def _is_allowed(card: MigCard, profiles: Mapping[str, MigProfile], layout: MigLayout) -> bool:
    counts = Counter(box.profile for box in layout)
    if any(count > profiles[name].most for name, count in counts.items()):
        return False
    return has_engines(card, [profiles[box.profile] for box in layout])


def _places(layout: MigLayout) -> tuple[tuple[int, str], ...]:
    return tuple((box.start, box.profile) for box in layout)
