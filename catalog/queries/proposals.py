"""What staff are offered to accept: discovery's proposals less those that they dismissed."""

from __future__ import annotations

from dataclasses import replace

from django.db.models import QuerySet

from catalog.discovery import Discovery
from catalog.models import DismissedProposal
from catalog.queries.hardware import discover
from cluster.models import Cluster


def proposals(cluster: Cluster) -> Discovery | None:
    """None while the mirror is unknown. Classes that exist already are among them: they are accepted without effect."""
    found = discover(cluster)
    if found is None:
        return None
    gone = set(dismissed(cluster).values_list("slug", flat=True))
    return replace(found, proposals=tuple(one for one in found.proposals if one.slug not in gone))


def dismissed(cluster: Cluster) -> QuerySet[DismissedProposal]:
    return DismissedProposal.objects.filter(cluster=cluster).order_by("slug")
