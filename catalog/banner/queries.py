"""Reads the banner that is shown now, if there is one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q
from django.db.models.functions import Now

from catalog.models import Banner


@dataclass(frozen=True)
class ActiveBanner:
    text: str
    until: datetime | None


def active_banner(cluster_id: int) -> ActiveBanner | None:
    """One query."""
    held = Q(until=None) | Q(until__gt=Now())
    found = Banner.objects.filter(held, cluster_id=cluster_id).values_list("text", "until").first()
    return ActiveBanner(*found) if found else None
