"""Discovery's proposals, without those that staff dismissed."""

from __future__ import annotations

from dataclasses import replace

from django.db.models import QuerySet

from catalog.discovery.queries import discover_cluster
from catalog.discovery.types import Discovery
from catalog.models import DismissedProposal
from cluster.models import Cluster


def open_proposals(cluster: Cluster) -> Discovery | None:
    """None while the mirror is unknown. Includes classes that exist already: accepting them has no effect."""
    found = discover_cluster(cluster)
    if found is None:
        return None
    gone = set(dismissed_proposals(cluster).values_list("slug", flat=True))
    return replace(found, proposals=tuple(one for one in found.proposals if one.slug not in gone))


def dismissed_proposals(cluster: Cluster) -> QuerySet[DismissedProposal]:
    return DismissedProposal.objects.filter(cluster=cluster).order_by("slug")
