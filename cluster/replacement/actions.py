"""Records which cluster the watcher reaches."""

from __future__ import annotations

from django.conf import settings
from django.db.models.functions import Now

from cluster.models import Cluster
from cluster.replacement.queries import KnownCluster
from portal.core.sql import leaves_no_connection


def record_reached(uid: str, known: KnownCluster) -> None:
    """`known`: as read before. The first cluster that a watcher ever reaches is the one of the rows. No statement if
    nothing has changed. A thread that has no connection yet closes the one that this opens.
    """
    rows = Cluster.objects.filter(name=settings.CLUSTER_NAME)
    with leaves_no_connection():
        if not known.uid:
            rows.filter(uid="").update(uid=uid)
        elif uid != known.uid and uid != known.other_uid:
            rows.filter(uid=known.uid).update(other_uid=uid, other_since=Now())
        elif uid == known.uid and known.other_uid:
            rows.filter(uid=known.uid).update(other_uid="", other_since=None)
