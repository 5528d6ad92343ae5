"""What one unit of a class counts, and what it takes, in GPUs. Pure.

The weight is what staff lets a unit count. Weights are stored with four digits, but 1/7 of a GPU is not exactly 0.1429.
Discovery proposes the fraction by the layout of the nodes: only that is one that adds up to whole GPUs.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from catalog.discovery import mig_profiles

# The most slices of a GPU.
_SLICES = 8
_ROUNDING = Fraction(1, 20_000)


def exact_weight(stored: Decimal, replicas: int = 1) -> Fraction:
    """Returns exactly n/7 of a GPU, or that part of it by the layout of a full GPU (2/15), divided by the replicas, if
    the stored value is that rounded.
    """
    weight = Fraction(stored)
    for full_sum in mig_profiles.FULL_SUMS_OF_EIGHT:
        near = (weight * replicas * full_sum).limit_denominator(_SLICES) / full_sum / replicas
        if abs(near - weight) <= _ROUNDING:
            return near
    return weight


def exact_digits(stored: Decimal, replicas: int) -> str:
    """Returns the exact weight with enough digits for sums of hours: seven slices of 0.1429 are more than one GPU."""
    exact = exact_weight(stored, replicas)
    return f"{Decimal(exact.numerator) / Decimal(exact.denominator):.12f}"


def physical_share(*, product: str, partition: str, replicas: int, weight: Decimal) -> Fraction:
    """Returns the part of a physical GPU that one unit takes: the fraction by a layout if that is its weight, as
    discovery proposes it, otherwise the larger share of compute and memory, the most that it takes in any layout. Its
    weight if the profiles of the GPU are not known.
    """
    if partition == "none":
        return Fraction(1, replicas)
    card = mig_profiles.card_of(product)
    share = mig_profiles.share_of(partition, card) if card is not None else None
    exact = exact_weight(weight, replicas)
    if card is None or share is None or any(exact * replicas * full_sum == share for full_sum in card.full_sums):
        return exact
    return share / replicas


def most_on_a_gpu(*, product: str, partition: str, replicas: int) -> int | None:
    """Returns how many units one GPU holds if it has no others; None if its profiles are not known."""
    if partition == "none":
        return replicas
    card = mig_profiles.card_of(product)
    profile = mig_profiles.profile_of(partition, card) if card is not None else None
    return None if profile is None else profile.most * replicas


def weight_text(weight: Fraction) -> str:
    """Returns 0.25 as it is, and sevenths or fifteenths as a fraction: no slice is 0.1429 of a GPU."""
    stored = weight * 10_000
    return f"{float(weight):g}" if stored.denominator == 1 else str(weight)
