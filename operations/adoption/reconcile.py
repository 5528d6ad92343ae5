"""Reads an existing namespace, takes it over when everybody has consented, and gives it back."""

from __future__ import annotations

from typing import Any

from django.db.models.functions import Now

from cluster.apply.types import ObjectKey, object_key
from cluster.client.api_kinds import api_path
from cluster.client.errors import ClusterRefused, Conflict, NotFound
from cluster.client.kube import Kube
from cluster.manifests import namespace as manifests
from cluster.manifests.adoption.labels import ADOPT_LABEL, ADOPTION_MANAGER, adoption_patch, is_adopted, labels_of
from cluster.manifests.metadata import MANAGED_BY, MANAGED_LABEL, OWNER_LABEL, Manifest
from cluster.models import MirrorPod
from cluster.reads import cluster_queue
from cluster.reads import queries as mirror
from operations.adoption.findings import READ_KINDS, Effect, Finding, ForeignPod, findings_of, is_blocked, losses
from operations.adoption.recording import record_taken, record_undone, store_reading
from operations.models import Adoption
from portal.core.due import DONE, Deadline, Outcome, TryLater, owner_label
from tenants.models import Namespace
from tenants.provisioning import queries as provisioning_queries
from tenants.provisioning.apply import WantedState
from tenants.provisioning.teardown.reconcile import CLAIM, queue_remains
from tenants.provisioning.teardown.release import release_namespace

# Somebody may label the namespace, or change what is in it, at any time. Where nobody waits, it is read less.
LOOK_AGAIN_S, LATER_S, SOON_S = 60.0, 600.0, 3.0
# Objects of one kind that are read. A namespace with more is not adopted.
OBJECTS_MOST = 2000


def reconcile_adoption(row: Adoption, deadline: Deadline, *, kube: Kube) -> Outcome:
    namespace = Namespace.objects.select_related("cluster", "tenant").get(pk=row.namespace_id)
    if row.state is Adoption.State.UNDOING:
        return _undo(row, namespace, deadline, kube=kube)
    if row.adopted_at is not None:
        return DONE
    wanted = _wanted(namespace)
    try:
        answer = kube.get("Namespace", name=namespace.name)
    except NotFound as gone:
        raise TryLater("adoption", f"The cluster has no namespace {namespace.name} any more.") from gone
    body = answer.body
    is_taken = answer.labels.get(OWNER_LABEL) == owner_label(namespace) and is_adopted(body)
    if is_taken and row.accepted_at is not None:
        # A worker died between the write to the cluster and that of the rows.
        record_taken(row, namespace, wanted[0], kube.apply(wanted[0], uid=answer.uid))
        return DONE
    if namespace.wanted == WantedState.CLOSED:
        # It may be resumed.
        return DONE if namespace.gone_at else Outcome(again_in_s=LATER_S, is_applied=False)
    consent = labels_of(body).get(ADOPT_LABEL, "")
    if consent != namespace.tenant.slug:
        # What is in the namespace is nobody's business before.
        store_reading(row, namespace, [], consent, is_read=False)
        return Outcome(again_in_s=LATER_S if row.undone_at else LOOK_AGAIN_S, is_applied=False)
    findings = [one.as_json() for one in _read(namespace, body, wanted, deadline, kube=kube)]
    store_reading(row, namespace, findings, consent, is_read=True)
    is_more_lost = losses(findings) - {tuple(key) for key in row.accepted}
    if row.accepted_at is None or is_more_lost or is_blocked(findings):
        return Outcome(again_in_s=LOOK_AGAIN_S, is_applied=False)
    deadline.check()
    try:
        _take_over(row, namespace, body, wanted[0], kube=kube)
    except Conflict:
        return Outcome(again_in_s=SOON_S, is_applied=False)
    except ClusterRefused as refused:
        raise TryLater("adoption", f"The cluster refused the adoption: {refused.text}") from refused
    return DONE


def _wanted(namespace: Namespace) -> list[Manifest]:
    """The objects that the team gets, the namespace first. Numbers do not matter here."""
    spec = provisioning_queries.namespace_spec(namespace, [], cluster_queue.ABSENT_QUEUE, is_held=True)
    return manifests.namespace_objects(spec)


def _read(
    namespace: Namespace, body: dict[str, Any], wanted: list[Manifest], deadline: Deadline, *, kube: Kube
) -> list[Finding]:
    if labels_of(body).get(MANAGED_LABEL) == MANAGED_BY:
        text = "Another installation of the portal manages this namespace."
        return [Finding(Effect.BLOCKED, "managed", "Namespace", namespace.name, text)]
    found: dict[str, list[Any]] = {}
    try:
        for kind in READ_KINDS:
            deadline.check()
            found[kind] = _list(namespace, kind, kube=kube)
    except ClusterRefused as refused:
        text = f"The worker may not read the namespace: {refused.text} The role gpu-portal-adoption gives it the right."
        raise TryLater("adoption", text) from refused
    return findings_of(body, _pods(namespace), found, wanted, _taken(namespace, wanted, kube=kube))


def _pods(namespace: Namespace) -> list[ForeignPod]:
    """From the mirror: the worker has no right to read pods."""
    if not mirror.as_of(namespace.cluster_id, "Pod").is_current:
        raise TryLater("adoption", "There are no current updates from the cluster: its pods are not known.")
    rows = MirrorPod.objects.filter(cluster_id=namespace.cluster_id, namespace=namespace.name, owner="")
    return [_foreign_pod(row) for row in rows.exclude(phase__in=("Succeeded", "Failed")).order_by("name")]


def _foreign_pod(row: MirrorPod) -> ForeignPod:
    owner, requests = row.record.get("controller"), row.record.get("requests") or {}
    devices = {name: amount for name, amount in requests.items() if "/" in name and amount}
    return ForeignPod(row.name, (owner["kind"], owner["name"]) if owner else None, devices)


def _list(namespace: Namespace, kind: str, *, kube: Kube) -> list[Any]:
    if kind == "LocalQueue" and not namespace.cluster.has_kueue:
        return []
    page = kube.list_page(api_path(kind, namespace.name), limit=OBJECTS_MOST)
    if page.get("metadata", {}).get("continue"):
        raise TryLater("adoption", f"{namespace.name} has more than {OBJECTS_MOST} objects of the kind {kind}.")
    return page.get("items") or []


def _taken(namespace: Namespace, wanted: list[Manifest], *, kube: Kube) -> set[ObjectKey]:
    """Objects outside of the namespace that the team needs and somebody else has."""
    taken: set[ObjectKey] = set()
    for manifest in wanted:
        kind, inside, name = object_key(manifest)
        if inside or kind == "Namespace":
            continue
        try:
            kube.get(kind, name=name)
        except NotFound:
            continue
        taken.add((kind, inside, name))
    return taken


def _take_over(row: Adoption, namespace: Namespace, body: dict[str, Any], manifest: Manifest, *, kube: Kube) -> None:
    """The write to the cluster first: if the worker dies before the rows are written, the namespace has the portal's
    labels already, and the next pass finds them with the owner of this row.
    """
    patch = adoption_patch(body, manifest)
    answer = kube.merge("Namespace", name=namespace.name, body=patch, manager=ADOPTION_MANAGER)
    record_taken(row, namespace, manifest, kube.apply(manifest, uid=answer.uid))


def _undo(row: Adoption, namespace: Namespace, deadline: Deadline, *, kube: Kube) -> Outcome:
    # A pass that began before the undo may still create objects; later ones do not.
    is_busy = Namespace.objects.filter(pk=namespace.pk, leased_until__gt=Now()).exists()
    if is_busy or queue_remains(namespace, deadline, kube=kube):
        return Outcome(again_in_s=SOON_S, is_applied=False)
    try:
        # Volumes hold data of the team: they stay, as everything else that is not the portal's.
        release_namespace(namespace, deadline, kube=kube, keep=[CLAIM])
    except Conflict:
        return Outcome(again_in_s=SOON_S, is_applied=False)
    record_undone(row, namespace)
    return Outcome(again_in_s=SOON_S)
