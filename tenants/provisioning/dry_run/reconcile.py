"""Tries the objects of a request's namespace as if its pending lines were approved, on the API server by dry run."""

from __future__ import annotations

from dataclasses import replace

from django.db.models.functions import Now

from cluster.apply.dry_run import PlannedChange, dry_run
from cluster.apply.reconcile import converge
from cluster.client.kube import Kube
from cluster.manifests import namespace as manifest_namespace
from cluster.manifests.metadata import Manifest
from cluster.manifests.specs import NamespaceSpec
from cluster.models import Cluster
from portal.core.due import DONE, Deadline, Outcome
from portal.core.hints import page_hint
from tenants.core import queries as core_queries
from tenants.grants import queries as grant_queries
from tenants.models import Namespace, Plan, QuotaLine
from tenants.provisioning import queries as provisioning_queries
from tenants.provisioning.apply import WantedState, is_namespace_owned, known_objects, queue_of

PLAN_NAMESPACE = "gpu-portal-plan"


def reconcile_plan(row: Plan, deadline: Deadline, *, kube: Kube) -> Outcome:
    """Tries the objects by dry run on the API server, as if the pending lines were approved as requested."""
    lines = list(QuotaLine.objects.filter(request=row.request, state=QuotaLine.State.PENDING))
    if not lines:
        return DONE
    target = row.request.tenant.namespaces.select_related("cluster").get()
    held = grant_queries.granted_units(target.tenant_id, core_queries.database_now())
    units = dict(held.in_force)
    totals = {one.gpu_class_id: one.units for one in held.bases}
    for line in lines:
        # A new or lowered total replaces only the total; increases stay on top.
        replaced = 0 if line.kind == QuotaLine.Kind.BOOST else totals.get(line.gpu_class_id, 0)
        units[line.gpu_class_id] = units.get(line.gpu_class_id, 0) - replaced + line.asked_units
    live = queue_of(target, kube)
    is_held = target.wanted != WantedState.ACTIVE
    shares = provisioning_queries.class_shares(target, units, keepable=held.keepable, planned=True)
    spec = provisioning_queries.namespace_spec(target, shares, live, is_held=is_held)
    planned = _try(target, spec, deadline, kube=kube)
    Plan.objects.filter(pk=row.pk).update(objects_planned=[one.as_json() for one in planned], made_at=Now())
    page_hint(target.name)
    return Outcome()


def _try(target: Namespace, spec: NamespaceSpec, deadline: Deadline, *, kube: Kube) -> list[PlannedChange]:
    wanted = manifest_namespace.namespace_objects(spec)
    if is_namespace_owned(known_objects(target)):
        return dry_run(kube=kube, cluster=target.cluster, owner=spec.owner, manifests=wanted, deadline=deadline)
    _ensure_plan_namespace(target.cluster, spec, deadline, kube=kube)
    moved = [_in_plan_namespace(manifest) for manifest in wanted]
    planned = dry_run(kube=kube, cluster=target.cluster, owner=spec.owner, manifests=moved, deadline=deadline)
    return [_in_own_namespace(one, target.name) for one in planned]


def _ensure_plan_namespace(cluster: Cluster, spec: NamespaceSpec, deadline: Deadline, *, kube: Kube) -> None:
    """Ensures a permanent empty namespace with our label, for objects whose own namespace does not exist yet."""
    owner = f"{cluster._meta.label_lower}.{cluster.pk}"
    empty = manifest_namespace.namespace(replace(spec, name=PLAN_NAMESPACE, owner=owner))
    converge(kube=kube, cluster_id=cluster.pk, owner=owner, manifests=[empty], deadline=deadline, delete_unwanted=False)


def _in_plan_namespace(manifest: Manifest) -> Manifest:
    if "namespace" not in manifest["metadata"]:
        return manifest
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": PLAN_NAMESPACE}}


def _in_own_namespace(one: PlannedChange, namespace: str) -> PlannedChange:
    if one.namespace != PLAN_NAMESPACE:
        return one
    note = f"Dry run in the empty namespace {PLAN_NAMESPACE}, because {namespace} does not exist yet."
    return replace(one, namespace=namespace, text=f"{one.text} {note}".strip())
