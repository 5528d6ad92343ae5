"""Keeps a worker from writing rows of one cluster into another: `connect()` reaches one cluster, whatever row it is
for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.conf import settings

from cluster.models import Cluster
from portal.core.due import Deadline, Due, Outcome, TryLater

Row = TypeVar("Row", bound=Due)
_TEXT = "This row belongs to another cluster than CLUSTER_NAME. Workers change only objects of their own cluster."


def in_own_cluster(
    reconcile: Callable[[Row, Deadline], Outcome], path: str = "cluster"
) -> Callable[[Row, Deadline], Outcome]:
    """The same for rows of the cluster CLUSTER_NAME; any other row raises TryLater. `path`: from a row to its cluster,
    as a filter has it. One query; only where there are rows of other clusters, one more for each row.
    """
    others = list(Cluster.objects.exclude(name=settings.CLUSTER_NAME).values_list("pk", flat=True))
    if not others:
        return reconcile

    def checked(row: Row, deadline: Deadline) -> Outcome:
        if type(row)._base_manager.filter(pk=row.pk, **{f"{path}__in": others}).exists():
            raise TryLater("other_cluster", _TEXT)
        return reconcile(row, deadline)

    return checked
