"""The prices that a class had, for operators, administrators and auditors."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import QuerySet

from accounts.core.actor import Actor
from catalog.models import ClassPrice, GpuClass

# Of the page; the API has all.
SHOWN = 10


def prices_of(one: GpuClass) -> QuerySet[ClassPrice]:
    """The latest first, with who set them."""
    return ClassPrice.objects.filter(gpu_class=one).select_related("by").order_by("-since", "-id")


def latest_prices(by: Actor, one: GpuClass) -> Iterable[ClassPrice]:
    """One query; none, and nothing, for everybody else."""
    return prices_of(one)[:SHOWN] if by.oversees else ()
