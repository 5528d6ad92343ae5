"""Reads which cluster the rows of this installation describe."""

from __future__ import annotations

from typing import NamedTuple

from django.conf import settings
from django.db.models import QuerySet

from cluster.models import Cluster
from portal.core.sql import leaves_no_connection


class KnownCluster(NamedTuple):
    """`uid`: "" before a watcher has recorded it. `other_uid`: the cluster that the watcher reaches instead, or ""."""

    uid: str
    other_uid: str


def known_cluster() -> KnownCluster:
    """One query, asked before requests. A thread that has no connection yet closes the one that this opens."""
    with leaves_no_connection():
        found = Cluster.objects.filter(name=settings.CLUSTER_NAME).values_list("uid", "other_uid").first()
        return KnownCluster(*found) if found else KnownCluster("", "")


def replaced_clusters(name: str) -> QuerySet[Cluster]:
    """The cluster of this name if the watcher reaches another one, else none, to be a part of another query."""
    return Cluster.objects.filter(name=name).exclude(other_uid="")
