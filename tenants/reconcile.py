"""Makes the cluster match a Namespace, a Plan and, knowing what was promised, a Pool. Says when to look again.

What Kueue has admitted is read from the queue itself, not from the mirror: provisioning goes on without the watcher.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from django.db.models.functions import Now

from catalog import reconcile as catalog
from catalog.models import Pool
from catalog.reconcile import Promises
from cluster import live_queue
from cluster.apply import Converged, Key, Manifest, converge
from cluster.dry_run import Planned, dry_run
from cluster.kube import Kube
from cluster.live_queue import LiveQueue
from cluster.manifests import namespace as manifests
from cluster.models import AppliedObject, Cluster
from cluster.specs import NamespaceSpec, QuotaCell
from portal.due import DONE, Deadline, Outcome, owner_label, wake
from portal.hints import page_hint
from tenants import entitlements, escalation, idle, queries, reconcile_close, refusals, reminders
from tenants.models import Namespace, Plan, QuotaLine
from tenants.queries import grants
from tenants.sending import SOON_S, known_of, queue_of, send

# Who makes a flavor wakes all namespaces; this is for a wake-up that was lost, and for a flavor that leaves when its
# last work ends, in days maybe. A flavor that cannot be made must not keep every namespace busy.
FLAVOR_AGAIN_S = 60.0
PLAN_NAMESPACE = "gpu-portal-plan"
Wanted = Namespace.Wanted
Known = dict[Key, AppliedObject]


# ---- Namespace ---------------------------------------------------------------------------------------------------


def namespace(row: Namespace, deadline: Deadline, *, kube: Kube) -> Outcome:
    now = queries.now()
    if row.closes_at is not None and row.closes_at <= now:
        return reconcile_close.close(row, deadline, kube=kube)
    moments = (queries.next_clock(now, tenant_id=row.tenant_id), row.closes_at, idle.look(row, now))
    clock = min((at for at in moments if at is not None), default=None)
    held = grants.held(row.tenant_id, now)
    # A team that is being closed renews nothing.
    reminders.send_due(row, held.bases if row.closes_at is None else (), now)
    reminders.tell_ends(row, held.ended)
    shares = queries.shares(row, held.in_force, keepable=held.keepable)
    live = queue_of(row, kube)
    is_suspended = row.wanted != Wanted.ACTIVE
    # A queue that is open stays open while other objects are repaired; a new one opens when the rest is applied.
    spec = queries.namespace_spec(row, shares, live, is_held=is_suspended or not live.is_open)
    spec = replace(spec, wakes=entitlements.wakes(shares, live, now))
    known = known_of(row)
    if not _is_ours(known):
        first = send(row, [manifests.namespace(spec)], deadline, kube=kube, is_all=False, known=known)
        # Nothing else is tried in a namespace that is not ours; the fence would refuse it object by object.
        refusals.tell_new(row, first)
        catalog.refuse_to_settle(row.cluster, owner_label(row), first, clock=clock)
    done = _converge(row, spec, live, known, deadline, kube=kube)
    if spec.is_held and not is_suspended and spec.cells is not None and done.is_all_applied:
        done = send(row, manifests.objects(replace(spec, is_held=False)), deadline, kube=kube, known=known)
    page_hint(row.name)
    is_kept_anew = any(kind == "Cohort" for kind, _, _ in (*done.sent, *done.deleted))
    if is_kept_anew:
        # What runs in a grace has changed, and with it what is left to lend.
        wake(Pool, Pool.objects.filter(cluster=row.cluster).values_list("pk", flat=True))
    refusals.tell_new(row, done)
    catalog.refuse_to_settle(row.cluster, owner_label(row), done, clock=clock)
    Namespace.objects.filter(pk=row.pk).update(applied_as_of=now)
    is_coming = any(_is_coming(share) for share in shares)
    leaving = entitlements.leaving(shares, live).values()
    is_ending = bool(done.terminating) or any(not cell.used for cell in leaving)
    # Something may have started between our reading the queue and its numbers falling.
    is_soon = is_ending or is_kept_anew or entitlements.is_to_wake_again(shares, now)
    again_in_s = SOON_S if is_soon else FLAVOR_AGAIN_S if is_coming or leaving or spec.grace else None
    return Outcome(again_in_s=again_in_s, clock=clock, is_applied=not (done.terminating or is_coming))


def _converge(
    row: Namespace, spec: NamespaceSpec, live: LiveQueue, known: Known, deadline: Deadline, *, kube: Kube
) -> Converged:
    """Lower first, raise last: queue numbers that fall, then everything else, then queue numbers that rise.

    Before any of it, what keeps running work from being reclaimed when the queue's numbers fall under it.
    """
    part = partial(send, row, deadline=deadline, kube=kube, is_all=False, known=known)
    kept = part(manifests.grace_cohort(spec)).sent if spec.grace else ()
    if spec.cells is not None and live.cells:
        lowered = entitlements.lowered(spec.cells, live)
        if lowered != spec.cells and any(_is_lower(cell, live) for cell in lowered):
            part([manifests.cluster_queue(spec, lowered)])
    if spec.cells is not None and live is live_queue.ABSENT:
        # The queue comes when everything else has been tried: on hold, but where all of it is applied.
        others = [manifest for manifest in manifests.objects(spec) if manifest["kind"] != "ClusterQueue"]
        rest = part(others)
        spec = replace(spec, is_held=row.wanted != Wanted.ACTIVE or not rest.is_all_applied)
        kept = (*kept, *rest.sent)
    done = send(row, manifests.objects(spec), deadline, kube=kube, known=known)
    return replace(done, sent=(*kept, *done.sent))


def _is_lower(cell: QuotaCell, live: LiveQueue) -> bool:
    now = live.cells.get((cell.resource, cell.flavor))
    return now is not None and (cell.nominal < now.nominal or (cell.borrowing_limit or 0) < (now.borrowing_limit or 0))


def _is_ours(known: Known) -> bool:
    """Not when somebody changed it, or deleted it and made another: then it is sent before anything is tried in it."""
    row = next((row for (kind, _, _), row in known.items() if kind == "Namespace"), None)
    return row is not None and row.result == AppliedObject.Result.APPLIED and not row.difference


def _is_coming(share: entitlements.Share) -> bool:
    return bool(share.flavor and not share.is_flavor_ready and (share.in_force or share.borrowing_limit))


# ---- Plan --------------------------------------------------------------------------------------------------------


def plan(row: Plan, deadline: Deadline, *, kube: Kube) -> Outcome:
    """The objects as if the pending lines were approved as asked, each tried on the API server and changed nowhere."""
    lines = list(QuotaLine.objects.filter(request=row.request, state=QuotaLine.State.PENDING))
    if not lines:
        return DONE
    # First, because it does not wait for the cluster.
    escalates_at = escalation.look(row.request)
    target = row.request.tenant.namespaces.select_related("cluster").get()
    held = grants.held(target.tenant_id, queries.now())
    units = dict(held.in_force)
    totals = {one.gpu_class_id: one.units for one in held.bases}
    for line in lines:
        # A new or lowered total takes the place of the total alone; boosts stay on top.
        replaced = 0 if line.kind == QuotaLine.Kind.BOOST else totals.get(line.gpu_class_id, 0)
        units[line.gpu_class_id] = units.get(line.gpu_class_id, 0) - replaced + line.asked_units
    live = queue_of(target, kube)
    is_held = target.wanted != Wanted.ACTIVE
    shares = queries.shares(target, units, keepable=held.keepable, planned=True)
    spec = queries.namespace_spec(target, shares, live, is_held=is_held)
    planned = _try(target, spec, deadline, kube=kube)
    Plan.objects.filter(pk=row.pk).update(objects_planned=[one.as_json() for one in planned], made_at=Now())
    page_hint(target.name)
    return Outcome(clock=escalates_at)


def _try(target: Namespace, spec: NamespaceSpec, deadline: Deadline, *, kube: Kube) -> list[Planned]:
    wanted = manifests.objects(spec)
    if _is_ours(known_of(target)):
        return dry_run(kube=kube, cluster=target.cluster, owner=spec.owner, manifests=wanted, deadline=deadline)
    _ensure_plan_namespace(target.cluster, spec, deadline, kube=kube)
    moved = [_in_plan_namespace(manifest) for manifest in wanted]
    planned = dry_run(kube=kube, cluster=target.cluster, owner=spec.owner, manifests=moved, deadline=deadline)
    return [_back_home(one, target.name) for one in planned]


def _ensure_plan_namespace(cluster: Cluster, spec: NamespaceSpec, deadline: Deadline, *, kube: Kube) -> None:
    """A standing empty namespace with our label, where objects are tried whose own namespace does not exist yet."""
    owner = f"{cluster._meta.label_lower}.{cluster.pk}"
    empty = manifests.namespace(replace(spec, name=PLAN_NAMESPACE, owner=owner))
    converge(kube=kube, cluster_id=cluster.pk, owner=owner, manifests=[empty], deadline=deadline, delete_unwanted=False)


def _in_plan_namespace(manifest: Manifest) -> Manifest:
    if "namespace" not in manifest["metadata"]:
        return manifest
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": PLAN_NAMESPACE}}


def _back_home(one: Planned, namespace: str) -> Planned:
    if one.namespace != PLAN_NAMESPACE:
        return one
    note = f"Tried in the empty namespace {PLAN_NAMESPACE}, because {namespace} does not exist yet."
    return replace(one, namespace=namespace, text=f"{one.text} {note}".strip())


# ---- Pool --------------------------------------------------------------------------------------------------------


def pool(row: Pool, deadline: Deadline, *, kube: Kube) -> Outcome:
    return catalog.pool(row, deadline, kube=kube, promises=_promises, queues_may_change=_wake_queues)


def _promises(cluster: Cluster) -> Promises:
    now = queries.now()
    return Promises(grants.taken_units(cluster, now), queries.next_clock(now, cluster=cluster), now)


def _wake_queues(cluster: Cluster) -> None:
    open_rows = Namespace.objects.filter(cluster=cluster).exclude(wanted=Wanted.CLOSED)
    wake(Namespace, open_rows.values_list("pk", flat=True))
