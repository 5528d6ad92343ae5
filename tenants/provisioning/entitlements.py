"""What a team's units of each class mean in the cluster: queue cells and hard limits. Pure; one definition for all.

The ClusterQueue is the limit; the ResourceQuota is a second limit behind it, twice as high as what may be admitted,
because a pod counts until it is gone while its successor is admitted already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from cluster.manifests.specs import QuotaCell, QuotaSpec
from cluster.reads.cluster_queue import FlavorKey, LiveClusterQueue, LiveQuotaCell

QUOTA_FACTOR = 2
# After a flavor was sent. More than one: Kueue may hear of the queue before it hears of the flavor.
WAKE_AFTER = (timedelta(0), timedelta(seconds=3), timedelta(seconds=10))


@dataclass(frozen=True)
class ClassShare:
    """One class for one tenant. `resource` is "" for a class without GPUs: the queue does not count it, the fuse does.
    Storage is for volumes alone: no pod is counted for it.

    `is_flavor_ready`: a queue that names a flavor that does not exist stops admitting anything.
    """

    slug: str
    resource: str
    flavor: str
    device_class: str
    cpu_per_unit: int
    memory_gib_per_unit: int
    borrowing_limit: int
    in_force: int
    # In force, or so recently that its grace lasts: what runs may go on holding as much.
    keepable: int = 0
    is_flavor_ready: bool = True
    flavor_sent_at: datetime | None = None
    is_storage: bool = False


def queue_cells(shares: Collection[ClassShare], live: LiveClusterQueue) -> tuple[QuotaCell, ...]:
    """Only what the tenant has or may borrow, and what is leaving (see `leaving`), closed for anything new.

    Units that run on a class's former flavor (its nodes were relabelled) are taken from the new one's, so that a
    change of labels promises nothing twice.
    """
    by_slug = {share.slug: share for share in shares}
    former: dict[str, int] = {}
    cells = []
    for (resource, flavor), cell in leaving_cells(shares, live).items():
        slug = flavor.rpartition("-")[0]
        left = by_slug[slug].in_force - former.get(slug, 0) if slug in by_slug else 0
        kept = max(0, min(cell.used, left))
        former[slug] = former.get(slug, 0) + kept
        cells.append(QuotaCell(resource, flavor, kept, 0))
    for share in shares:
        if _is_queued(share):
            borrowing_limit = 0 if _beyond(share, live) else share.borrowing_limit
            nominal = share.in_force - former.get(share.slug, 0)
            cells.append(QuotaCell(share.resource, share.flavor, nominal, borrowing_limit))
    return tuple(sorted(cells))


def grace_cells(shares: Collection[ClassShare], live: LiveClusterQueue) -> tuple[QuotaCell, ...]:
    """What runs beyond the queue's own numbers although its grant is over, as far as its grace covers it.

    It falls as runs end. Nothing new has a place in it: it is not the queue's own (see manifests.grace_cohort).
    """
    nominal = {(cell.resource, cell.flavor): cell.nominal for cell in queue_cells(shares, live)}
    cells = []
    for share in shares:
        left = _beyond(share, live)
        for (resource, flavor), cell in sorted(_used(share, live).items()):
            kept = min(left, max(0, cell.used - nominal.get((resource, flavor), 0)))
            left -= kept
            if kept:
                cells.append(QuotaCell(resource, flavor, kept))
    return tuple(sorted(cells))


def _beyond(share: ClassShare, live: LiveClusterQueue) -> int:
    """Units that run, are not in force any more and are in their grace."""
    used = sum(cell.used for cell in _used(share, live).values())
    return max(0, min(used, share.keepable) - share.in_force)


def _used(share: ClassShare, live: LiveClusterQueue) -> dict[FlavorKey, LiveQuotaCell]:
    """The class's cells in the queue, those of former flavors as well."""
    return {
        (resource, flavor): cell
        for (resource, flavor), cell in live.cells.items()
        if resource == share.resource and flavor.rpartition("-")[0] == share.slug
    }


def leaving_cells(shares: Collection[ClassShare], live: LiveClusterQueue) -> dict[FlavorKey, LiveQuotaCell]:
    """Flavors that have to stay in the queue for a while although they are no longer wanted.

    Removing one in use would hide its use. One that is still open is first closed (all numbers 0) and removed at the
    next look: something may have been admitted to it since we read the queue.
    """
    wanted = {(share.resource, share.flavor) for share in shares if _is_queued(share)}
    return {
        key: cell
        for key, cell in live.cells.items()
        if key not in wanted and (cell.used or cell.nominal or cell.borrowing_limit)
    }


def lowered_cells(cells: Iterable[QuotaCell], live: LiveClusterQueue) -> tuple[QuotaCell, ...]:
    """The cells with no number above what the queue has now: sent first, so that limits fall before others rise.

    Flavors that are still in the queue and not wanted any more are gone already here; new ones come with 0.
    """
    return tuple(
        QuotaCell(
            cell.resource,
            cell.flavor,
            min(cell.nominal, now.nominal) if now else 0,
            min(cell.borrowing_limit or 0, now.borrowing_limit or 0) if now else 0,
        )
        for cell, now in ((cell, live.cells.get((cell.resource, cell.flavor))) for cell in cells)
    )


def wake_counter(shares: Collection[ClassShare], live: LiveClusterQueue, now: datetime) -> int:
    """A flavor that opens again wakes nobody in Kueue, a queue's number that changes does: this one counts nothing.

    It follows the latest change of the queue's flavors while something waits, and stays as it is otherwise.
    """
    sent_at = _flavors_sent_at(shares)
    if sent_at is None or not live.pending:
        return live.wakes
    return (int(sent_at.timestamp()) + sum(now >= sent_at + after for after in WAKE_AFTER)) % 1000


def is_to_wake_again(shares: Collection[ClassShare], now: datetime) -> bool:
    sent_at = _flavors_sent_at(shares)
    return sent_at is not None and now < sent_at + WAKE_AFTER[-1]


def _flavors_sent_at(shares: Collection[ClassShare]) -> datetime | None:
    return max((share.flavor_sent_at for share in shares if _is_queued(share) and share.flavor_sent_at), default=None)


def resource_quota(shares: Collection[ClassShare], live: LiveClusterQueue) -> QuotaSpec:
    """Every name of the catalog is there: a name that a ResourceQuota does not mention is unlimited."""
    devices: dict[str, int] = {}
    cpu = memory_gib = 0
    storage = [share.in_force for share in shares if share.is_storage]
    for share in shares:
        if share.is_storage:
            continue
        units = _admissible(share, live)
        cpu += units * share.cpu_per_unit
        memory_gib += units * share.memory_gib_per_unit
        if key := quota_key(share):
            devices[key] = devices.get(key, 0) + QUOTA_FACTOR * units
    return QuotaSpec(
        devices=dict(sorted(devices.items())),
        cpu=QUOTA_FACTOR * cpu,
        memory_gib=QUOTA_FACTOR * memory_gib,
        storage_gib=sum(storage) if storage else None,
    )


def quota_key(share: ClassShare) -> str:
    if share.device_class:
        return f"{share.device_class}.deviceclass.resource.k8s.io/devices"
    return f"requests.{share.resource}" if share.resource else ""


def _admissible(share: ClassShare, live: LiveClusterQueue) -> int:
    """Units that may be admitted now, or are: a quota below them would only keep pods from coming back."""
    admitted = sum(cell.used for cell in _used(share, live).values())
    return max(share.in_force + share.borrowing_limit, admitted)


def _is_queued(share: ClassShare) -> bool:
    return bool(share.resource and share.is_flavor_ready and (share.in_force or share.borrowing_limit))
