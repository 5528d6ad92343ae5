"""Makes the cluster match a Namespace and, from the grants, a Pool. Says when to look again.

What Kueue has admitted is read from the queue itself, not from the mirror: provisioning goes on without the watcher.
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

# Who makes a flavor wakes all namespaces; this is for a wake-up that was lost, and for a flavor that leaves when its
# last work ends, in days maybe. A flavor that cannot be made must not keep every namespace busy.
FLAVOR_RETRY_S = 60.0


# ---- Namespace ---------------------------------------------------------------------------------------------------


def reconcile_namespace(
    row: Namespace, deadline: Deadline, *, now: datetime, held: GrantedUnits, kube: Kube
) -> Outcome:
    """The objects of a team that is not closed yet and is granted `held` at `now`, the database's."""
    moments = (grant_queries.next_grant_change(now, tenant_id=row.tenant_id), row.closes_at)
    clock = min((at for at in moments if at is not None), default=None)
    shares = provisioning_queries.class_shares(row, held.in_force, keepable=held.keepable)
    live = queue_of(row, kube)
    is_suspended = row.wanted != WantedState.ACTIVE
    # A queue that is open stays open while other objects are repaired; a new one opens when the rest is applied.
    spec = provisioning_queries.namespace_spec(row, shares, live, is_held=is_suspended or not live.is_open)
    spec = replace(spec, wakes=entitlements.wake_counter(shares, live, now))
    known = known_objects(row)
    if not is_namespace_owned(known):
        first = apply_objects(row, [manifests.namespace(spec)], deadline, kube=kube, is_all=False, known=known)
        # Nothing else is tried in a namespace that is not ours; the fence would refuse it object by object.
        apply_reconcile.raise_if_not_applied(row.cluster, owner_label(row), first, clock=clock)
    done = _converge(row, spec, live, known, deadline, kube=kube)
    if spec.is_held and not is_suspended and spec.cells is not None and done.is_all_applied:
        done = apply_objects(
            row, manifests.namespace_objects(replace(spec, is_held=False)), deadline, kube=kube, known=known
        )
    page_hint(row.name)
    is_kept_anew = any(kind == "Cohort" for kind, _, _ in (*done.sent, *done.deleted))
    if is_kept_anew:
        # What runs in a grace has changed, and with it what is left to lend.
        wake(Pool, Pool.objects.filter(cluster=row.cluster).values_list("pk", flat=True))
    apply_reconcile.raise_if_not_applied(row.cluster, owner_label(row), done, clock=clock)
    Namespace.objects.filter(pk=row.pk).update(applied_as_of=now)
    is_coming = any(_is_coming(share) for share in shares)
    leaving = entitlements.leaving_cells(shares, live).values()
    is_ending = bool(done.terminating) or any(not cell.used for cell in leaving)
    # Something may have started between our reading the queue and its numbers falling.
    is_soon = is_ending or is_kept_anew or entitlements.is_to_wake_again(shares, now)
    again_in_s = RETRY_SOON_S if is_soon else FLAVOR_RETRY_S if is_coming or leaving or spec.grace else None
    return Outcome(again_in_s=again_in_s, clock=clock, is_applied=not (done.terminating or is_coming))


def _converge(
    row: Namespace, spec: NamespaceSpec, live: LiveClusterQueue, known: KnownObjects, deadline: Deadline, *, kube: Kube
) -> ConvergeResult:
    """Lower first, raise last: queue numbers that fall, then everything else, then queue numbers that rise.

    Before any of it, what keeps running work from being reclaimed when the queue's numbers fall under it.
    """
    part = partial(apply_objects, row, deadline=deadline, kube=kube, is_all=False, known=known)
    kept = part(manifests.grace_cohort(spec)).sent if spec.grace else ()
    if spec.cells is not None and live.cells:
        lowered = entitlements.lowered_cells(spec.cells, live)
        if lowered != spec.cells and any(_is_lower(cell, live) for cell in lowered):
            part([manifests.cluster_queue(spec, lowered)])
    if spec.cells is not None and live is cluster_queue.ABSENT_QUEUE:
        # The queue comes when everything else has been tried: on hold, but where all of it is applied.
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
