"""What one unit of a class counts, and what it takes, in GPUs. Pure.

The weight is what staff lets a unit count. Weights are stored with four digits, but 1/7 of a GPU is not exactly 0.1429.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from catalog.discovery import mig_profiles

# The most slices of a GPU.
_SLICES = 8
_ROUNDING = Fraction(1, 20_000)


def exact_weight(stored: Decimal, replicas: int = 1) -> Fraction:
    """Returns exactly n/7 of a GPU, divided by the replicas, if the stored value is that rounded."""
    weight = Fraction(stored)
    near = (weight * replicas).limit_denominator(_SLICES) / replicas
    return near if abs(near - weight) <= _ROUNDING else weight


def physical_share(*, product: str, partition: str, replicas: int, weight: Decimal) -> Fraction:
    """Returns the part of a physical GPU that one unit takes; its weight if the profiles of the GPU are not known."""
    if partition == "none":
        return Fraction(1, replicas)
    card = mig_profiles.card_of(product)
    share = mig_profiles.share_of(partition, card) if card is not None else None
    return exact_weight(weight, replicas) if share is None else share / replicas


def weight_text(weight: Fraction) -> str:
    """Returns 0.25 as it is, and sevenths as a fraction: no slice is 0.1429 of a GPU."""
    stored = weight * 10_000
    return f"{float(weight):g}" if stored.denominator == 1 else str(weight)
