"""Which rules are on, their bounds, and the facts that they use."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, Sum

from tenants.models import Grant, QuotaLine, Rule
from tenants.requests.rules.policy import INCREASE, RULE_DEFAULTS, IncreaseBounds, IncreaseFacts


def is_rule_on(name: str) -> bool:
    """One query."""
    found = Rule.objects.filter(name=name).values_list("is_on", flat=True).first()
    return RULE_DEFAULTS[name] if found is None else found


def increase_bounds() -> IncreaseBounds:
    """Returns the bounds, whether the rule is on or off. One query."""
    row = Rule.objects.filter(name=INCREASE).first()
    return bounds_of(row) if row else IncreaseBounds()


def bounds_of(row: Rule) -> IncreaseBounds:
    return IncreaseBounds(**{field.name: getattr(row, field.name) for field in fields(IncreaseBounds)})


def granted_and_base_units(tenant_ids: Collection[int], *, at: datetime) -> dict[tuple[int, int], tuple[int, int]]:
    """By tenant and class: units in force at that instant with increases, and those of the total alone. One query."""
    rows = Grant.objects.filter(tenant_id__in=tenant_ids, period__contains=at).values("tenant_id", "gpu_class_id")
    summed = rows.annotate(held=Sum("units"), base=Sum("units", filter=Q(kind=Grant.Kind.BASE), default=0))
    return {(row["tenant_id"], row["gpu_class_id"]): (row["held"], row["base"]) for row in summed}


def increase_facts(
    line: QuotaLine, name: str, held_base: tuple[int, int], plain: Mapping[str, Any], *, at: datetime
) -> IncreaseFacts:
    """Facts of a requested new total; `plain` is the class's part of `UsageEvidence.plain`. No query."""
    held, base = held_base
    runs, waited = plain.get("runs"), plain.get("runs_waited")
    return IncreaseFacts(
        class_name=name,
        held=held,
        base=base,
        asked=line.asked_units,
        days=(line.asked_until - max(line.asked_from, at)) / timedelta(days=1),
        peak=plain.get("peak"),
        mean=plain.get("mean"),
        seen_share=plain.get("seen_share"),
        waited_share=waited / runs if runs and waited is not None else None,
        activity=plain.get("activity"),
        activity_seen_share=plain.get("activity_seen_share"),
    )
