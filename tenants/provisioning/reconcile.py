"""Makes the cluster match a Namespace and, from the grants, a Pool. Returns when to check again.

What Kueue has admitted is read from the queue itself, not from the mirror, so that provisioning works without the
watcher.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial

from catalog.models import Pool
from catalog.pool import reconcile as catalog
from catalog.pool.types import AllocatedUnits
from cluster.apply import reconcile as apply_reconcile
from cluster.apply.types import ConvergeResult
from cluster.client.kube import Kube
from cluster.manifests import namespace as manifests
from cluster.manifests.specs import NamespaceSpec, QuotaCell
from cluster.models import Cluster
from cluster.reads import cluster_queue
from cluster.reads.cluster_queue import LiveClusterQueue
from portal.core.due import Deadline, Outcome, owner_label, wake
from portal.core.hints import page_hint
from tenants.core import queries
from tenants.grants import queries as grant_queries
from tenants.grants.queries import GrantedUnits
from tenants.models import Namespace
from tenants.provisioning import entitlements
from tenants.provisioning import queries as provisioning_queries
from tenants.provisioning.apply import (
    RETRY_SOON_S,
    KnownObjects,
    WantedState,
    apply_objects,
    is_namespace_owned,
    known_objects,
    queue_of,
)

# Creating a flavor wakes all namespaces. This interval covers a lost wake-up, and a flavor that is removed only when
# its last workload ends, possibly after days. A flavor that cannot be created must not keep every namespace busy.
FLAVOR_RETRY_S = 60.0


# ---- Namespace ---------------------------------------------------------------------------------------------------


def reconcile_namespace(
    row: Namespace, deadline: Deadline, *, now: datetime, held: GrantedUnits, kube: Kube
) -> Outcome:
    """Applies the objects of a team that is not closed yet; `held` are its units at `now`, by the database's clock."""
    moments = (grant_queries.next_grant_change(now, tenant_id=row.tenant_id), row.closes_at)
    clock = min((at for at in moments if at is not None), default=None)
    shares = provisioning_queries.class_shares(row, held.in_force, keepable=held.keepable)
    live = queue_of(row, kube)
    is_suspended = row.wanted != WantedState.ACTIVE
    # An open queue stays open while other objects are repaired; a new queue opens when all other objects are applied.
    spec = provisioning_queries.namespace_spec(row, shares, live, is_held=is_suspended or not live.is_open)
    spec = replace(spec, wakes=entitlements.wake_counter(shares, live, now))
    known = known_objects(row)
    if not is_namespace_owned(known):
        first = apply_objects(row, [manifests.namespace(spec)], deadline, kube=kube, is_all=False, known=known)
        # Nothing else is tried in a namespace that is not ours; each object would be refused.
        apply_reconcile.raise_if_not_applied(row.cluster, owner_label(row), first, clock=clock)
    done = _converge(row, spec, live, known, deadline, kube=kube)
    if spec.is_held and not is_suspended and spec.cells is not None and done.is_all_applied:
        done = apply_objects(
            row, manifests.namespace_objects(replace(spec, is_held=False)), deadline, kube=kube, known=known
        )
    page_hint(row.name)
    is_kept_anew = any(kind == "Cohort" for kind, _, _ in (*done.sent, *done.deleted))
    if is_kept_anew:
        # The units that run in a grace have changed, and with them the units that can be lent.
        wake(Pool, Pool.objects.filter(cluster=row.cluster).values_list("pk", flat=True))
    apply_reconcile.raise_if_not_applied(row.cluster, owner_label(row), done, clock=clock)
    Namespace.objects.filter(pk=row.pk).update(applied_as_of=now)
    is_coming = any(_is_coming(share) for share in shares)
    leaving = entitlements.leaving_cells(shares, live).values()
    is_ending = bool(done.terminating) or any(not cell.used for cell in leaving)
    # A workload may have started after the queue was read and before its numbers fell.
    is_soon = is_ending or is_kept_anew or entitlements.is_to_wake_again(shares, now)
    again_in_s = RETRY_SOON_S if is_soon else FLAVOR_RETRY_S if is_coming or leaving or spec.grace else None
    return Outcome(again_in_s=again_in_s, clock=clock, is_applied=not (done.terminating or is_coming))


def _converge(
    row: Namespace, spec: NamespaceSpec, live: LiveClusterQueue, known: KnownObjects, deadline: Deadline, *, kube: Kube
) -> ConvergeResult:
    """Applies in this order: queue numbers that fall, then everything else, then queue numbers that rise.

    The grace cohort is sent before all of these: it keeps running workloads from being reclaimed when the queue's
    numbers fall below their use.
    """
    part = partial(apply_objects, row, deadline=deadline, kube=kube, is_all=False, known=known)
    kept = part(manifests.grace_cohort(spec)).sent if spec.grace else ()
    if spec.cells is not None and live.cells:
        lowered = entitlements.lowered_cells(spec.cells, live)
        if lowered != spec.cells and any(_is_lower(cell, live) for cell in lowered):
            part([manifests.cluster_queue(spec, lowered)])
    if spec.cells is not None and live is cluster_queue.ABSENT_QUEUE:
        # A new queue is created after all other objects were tried, on hold unless all of them are applied.
        others = [manifest for manifest in manifests.namespace_objects(spec) if manifest["kind"] != "ClusterQueue"]
        rest = part(others)
        spec = replace(spec, is_held=row.wanted != WantedState.ACTIVE or not rest.is_all_applied)
        kept = (*kept, *rest.sent)
    done = apply_objects(row, manifests.namespace_objects(spec), deadline, kube=kube, known=known)
    return replace(done, sent=(*kept, *done.sent))


def _is_lower(cell: QuotaCell, live: LiveClusterQueue) -> bool:
    now = live.cells.get((cell.resource, cell.flavor))
    return now is not None and (cell.nominal < now.nominal or (cell.borrowing_limit or 0) < (now.borrowing_limit or 0))


def _is_coming(share: entitlements.ClassShare) -> bool:
    return bool(share.flavor and not share.is_flavor_ready and (share.in_force or share.borrowing_limit))


# ---- Pool --------------------------------------------------------------------------------------------------------


def reconcile_pool(row: Pool, deadline: Deadline, *, kube: Kube) -> Outcome:
    return catalog.reconcile_pool(row, deadline, kube=kube, promises=_promises, queues_may_change=_wake_queues)


def _promises(cluster: Cluster) -> AllocatedUnits:
    now = queries.database_now()
    return AllocatedUnits(
        grant_queries.unlendable_units(cluster, now), grant_queries.next_grant_change(now, cluster=cluster), now
    )


def _wake_queues(cluster: Cluster) -> None:
    open_rows = Namespace.objects.filter(cluster=cluster).exclude(wanted=WantedState.CLOSED)
    wake(Namespace, open_rows.values_list("pk", flat=True))
