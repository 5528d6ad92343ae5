"""Every layout of every GPU with MIG: all sets of instances that one GPU can hold at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from catalog.discovery import mig_placement, mig_profiles

# A name for each GPU of the table in mig_profiles. Those without a size in their name stand for all sizes sold.
PRODUCTS = (
    "NVIDIA-A30",
    "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
    "NVIDIA-RTX-PRO-5000-Blackwell",
    "NVIDIA-RTX-PRO-4500-Blackwell",
    "NVIDIA-A100-SXM4-40GB",
    "NVIDIA-A100-SXM4-80GB",
    "NVIDIA-A800-SXM4-80GB",
    "NVIDIA-GH200-480GB",
    "NVIDIA-H100-80GB-HBM3",
    "NVIDIA-H100-NVL",
    "NVIDIA-H800",
    "NVIDIA-H200",
    "NVIDIA-H20",
    "NVIDIA-B200",
    "NVIDIA-GB200",
    "NVIDIA-B300",
    "NVIDIA-GB300",
)


@dataclass(frozen=True)
class LayoutsOfGpu:
    """`layouts`: number of instances by profile. `full`: those beside which no instance of any profile fits."""

    card: mig_profiles.MigCard
    layouts: tuple[Mapping[str, int], ...]
    full: tuple[Mapping[str, int], ...]


@cache
def layouts_of(product: str) -> tuple[LayoutsOfGpu, ...]:
    """One for each size in which the product is sold."""
    card = mig_profiles.card_of(product)
    assert card is not None
    return tuple(_layouts(replace(card, sizes=(size,))) for size in card.sizes)


def names_of(card: mig_profiles.MigCard) -> dict[str, mig_profiles.MigProfile]:
    """The names of the profiles of a GPU of one size, as NVIDIA's tools write them."""
    (size,) = card.sizes
    found = {}
    for (compute, memory, extra), profile in card.profiles.items():
        name = f"{compute}g.{round(memory * size / card.memory_slices)}gb"
        found[name + (extra if extra.startswith("-") else f"+{extra}" if extra else "")] = profile
    return found


def has_media(counts: Mapping[str, int]) -> bool:
    """Whether a profile is a variant of another with more, fewer or other engines."""
    return any("+" in name or name.endswith("-me") for name in counts)


def _layouts(card: mig_profiles.MigCard) -> LayoutsOfGpu:
    """Adds one instance at a time: what an instance fits beside also fits without it."""
    names = sorted(names_of(card))
    found: set[tuple[str, ...]] = {()}
    added = [*found]
    while added:
        larger = {tuple(sorted((*one, name))) for one in added for name in names} - found
        added = [one for one in larger if mig_placement.card_layout(card, Counter(one)) is not None]
        found.update(added)
    full = [one for one in found if not any(tuple(sorted((*one, name))) in found for name in names)]
    return LayoutsOfGpu(card, tuple(map(Counter, sorted(found))), tuple(map(Counter, sorted(full))))
