"""Reads the banner that is shown now, if there is one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from catalog.models import Banner

_SHOWN = Q(until=None) | Q(until__gt=Now())


@dataclass(frozen=True)
class ActiveBanner:
    text: str
    until: datetime | None


def active_banner(cluster_id: int) -> ActiveBanner | None:
    """One query."""
    return _first(Banner.objects.filter(_SHOWN, cluster_id=cluster_id))


def active_banners(cluster: str) -> QuerySet[Banner]:
    """That of the cluster of this name, to be a part of another query. At most one."""
    return Banner.objects.filter(_SHOWN, cluster__name=cluster)


def banner_of_installation() -> ActiveBanner | None:
    """For pages of people who are not signed in. One query."""
    return _first(active_banners(settings.CLUSTER_NAME))


def _first(found: QuerySet[Banner]) -> ActiveBanner | None:
    row = found.values_list("text", "until").first()
    return ActiveBanner(*row) if row else None
