"""What a team's units of each class mean in the cluster: queue cells and hard limits. Pure; the only definition.

The ClusterQueue is the limit. The ResourceQuota is a second limit, twice as high as what may be admitted, because a pod
counts until it is gone while its successor is already admitted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from cluster.manifests.specs import QuotaCell, QuotaSpec
from cluster.reads.cluster_queue import FlavorKey, LiveClusterQueue, LiveQuotaCell

QUOTA_FACTOR = 2
# Delays after a flavor was sent. Several, because Kueue may receive the queue before it receives the flavor.
WAKE_AFTER = (timedelta(0), timedelta(seconds=3), timedelta(seconds=10))


@dataclass(frozen=True)
class ClassShare:
    """One class for one team. `resource` is "" for a class without GPUs: the ResourceQuota counts it, the queue does
    not. Storage is only for volumes: no pod counts for it.

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
    # In force, or expired with the grace still running: running workloads may keep this many units.
    keepable: int = 0
    is_flavor_ready: bool = True
    flavor_sent_at: datetime | None = None
    is_storage: bool = False


def queue_cells(shares: Collection[ClassShare], live: LiveClusterQueue) -> tuple[QuotaCell, ...]:
    """Returns cells only for what the team has or may borrow, and for flavors that are being removed (see
    `leaving_cells`), which are closed to new workloads.

    Units that run on a class's former flavor (its nodes were relabelled) are subtracted from the new flavor, so that a
    change of labels does not promise the same units twice.
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
    """Returns units that run beyond the queue's own quota after their grant ended, as far as the grace covers them.

    They fall as runs end. New workloads cannot use them: they are not the queue's own (see manifests.grace_cohort).
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
    """Returns the units that run, are no longer in force and are in their grace."""
    used = sum(cell.used for cell in _used(share, live).values())
    return max(0, min(used, share.keepable) - share.in_force)


def _used(share: ClassShare, live: LiveClusterQueue) -> dict[FlavorKey, LiveQuotaCell]:
    """Returns the class's cells in the queue, including those of former flavors."""
    return {
        (resource, flavor): cell
        for (resource, flavor), cell in live.cells.items()
        if resource == share.resource and flavor.rpartition("-")[0] == share.slug
    }


def leaving_cells(shares: Collection[ClassShare], live: LiveClusterQueue) -> dict[FlavorKey, LiveQuotaCell]:
    """Returns flavors that must stay in the queue for a while although they are no longer wanted.

    Removing a flavor in use would hide its use. A flavor that is still open is first closed (all numbers 0) and removed
    at the next check: something may have been admitted to it since we read the queue.
    """
    wanted = {(share.resource, share.flavor) for share in shares if _is_queued(share)}
    return {
        key: cell
        for key, cell in live.cells.items()
        if key not in wanted and (cell.used or cell.nominal or cell.borrowing_limit)
    }


def lowered_cells(cells: Iterable[QuotaCell], live: LiveClusterQueue) -> tuple[QuotaCell, ...]:
    """Returns the cells with no number above the queue's current one: sent first, so that limits fall before others
    rise.

    Flavors in the queue that are no longer wanted are already left out; new flavors start with 0.
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
    """Returns a number whose only use is to change: Kueue retries pending workloads when a number in the queue changes,
    but not when a flavor becomes usable again.

    It follows the latest change of the queue's flavors while workloads are pending, and otherwise stays as it is.
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
    """Returns limits for every name of the catalog: a name that a ResourceQuota does not mention is unlimited."""
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
    """Returns the units that may be admitted or are: a lower quota would only keep pods from being recreated."""
    admitted = sum(cell.used for cell in _used(share, live).values())
    return max(share.in_force + share.borrowing_limit, admitted)


def _is_queued(share: ClassShare) -> bool:
    return bool(share.resource and share.is_flavor_ready and (share.in_force or share.borrowing_limit))
