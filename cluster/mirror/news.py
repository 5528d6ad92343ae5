"""What rows learn of a batch: the owners of what it changed, and owners of whom no object of the batch speaks.

Rows look again only when something wakes them, so each change that the mirror shows has to reach its owner: also one
that happened while no watcher ran, and one that left no object to report it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from cluster.mirror import tables
from cluster.mirror.batch import MirrorBatch
from cluster.models import MirrorKind

_CAPACITY = {"Node", "ResourceSlice"}
# What a run is read from: without a complete list of these, a worker concludes nothing.
_OF_RUNS = ("Job", "Pod")


def owners_of_lists(cluster_id: int, batch: MirrorBatch) -> set[str]:
    """Call it after the rows of the batch are written and before its lists are marked as complete. No query without a
    complete list of Jobs or pods, at most three with one.

    What was created and deleted while nobody watched was never in the mirror, and no row of it goes: owners of Jobs
    that a complete list does not have look themselves. When a kind was not known before, all look: until now they
    could not see anything.
    """
    listed = [name for name in _OF_RUNS if name in batch.marks and batch.marks[name].is_listed]
    if not listed:
        return set()
    known = MirrorKind.objects.filter(cluster_id=cluster_id, kind__in=listed, listed_at__isnull=False)
    if known.count() < len(listed):
        return tables.owners_of_jobs(cluster_id)
    return tables.owners_of_jobs(cluster_id, is_absent=True) if "Job" in listed else set()


def write_news(cluster_id: int, batch: MirrorBatch, *, capacity_owners: Callable[[], Iterable[str]]) -> bool:
    """Returns whether there are any."""
    gone = {"gone": True, "fields": [], "manager": "", "since": now_text()}
    news = [(owner, uid, gone) for owner, uid, _kind in batch.gone] + batch.differences
    owners = set(batch.owners)
    if any(seen.kind in _CAPACITY for seen in batch.upserts.values()) or _CAPACITY & batch.deletes.keys():
        owners.update(capacity_owners())
    if leaving := batch.leaving_nodes():
        owners.update(tables.owners_on(cluster_id, leaving))
    news += [(owner, "", {}) for owner in sorted(owners - {owner for owner, _uid, _text in news})]
    if news:
        tables.add_news(cluster_id, news)
    return bool(news)


def now_text() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
