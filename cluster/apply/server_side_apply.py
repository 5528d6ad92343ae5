"""Sends one object to the API server.

The first write is POST, so that an object of the same name that is not ours is reported and never adopted. Later writes
are server-side apply with the uid that the API server returned, so that an object that another client deleted and
created again is not taken for ours.
"""

from __future__ import annotations

from cluster.apply.types import object_key
from cluster.client.errors import ClusterRefused, ClusterUnavailable, Conflict, NotFound
from cluster.client.kube import Kube
from cluster.client.managed_fields import has_stale_fields
from cluster.client.types import ApiObject
from cluster.manifests.metadata import OWNER_LABEL, Manifest

# Kinds with maps whose keys may be removed later.
KINDS_WITH_REMOVABLE_KEYS = frozenset({"ResourceQuota", "Secret"})


class ForeignObject(Exception):
    """An object of this name is not ours."""


def write_object(kube: Kube, owner: str, manifest: Manifest, uid: str) -> ApiObject:
    """Raises ClusterUnavailable if the object is in transition: another client changed it during the call, it was just
    deleted, or several creations at once were counted against the namespace's quota.
    """
    if uid and (answer := _apply(kube, manifest, uid)):
        return answer
    # The object is gone, or it was created again: by us in a pass that ended before it was recorded, or by another
    # client.
    found = _find(kube, manifest) if uid else None
    if found is None:
        try:
            return _create(kube, manifest)
        except Conflict as conflict:
            found = _find(kube, manifest)
            if found is None:
                # An apply without a uid would adopt an object that another client creates in between.
                raise ClusterUnavailable(conflict.text) from conflict
    if found.uid != uid:
        if found.labels.get(OWNER_LABEL) != owner:
            raise ForeignObject(foreign_text(manifest))
        if answer := _apply(kube, manifest, kube.own_fields(found).uid):
            return answer
    raise ClusterUnavailable("Another client changed the object at the same time.")


def _create(kube: Kube, manifest: Manifest) -> ApiObject:
    """Creates the object. For kinds with removable keys it marks the fields as applied at once, so that a dry run shows
    which keys go. Manifests of other kinds always have the same fields; `_apply` marks them at their first change,
    which halves the number of requests for a new namespace.
    """
    answer = kube.create(manifest)
    return kube.own_fields(answer) if manifest["kind"] in KINDS_WITH_REMOVABLE_KEYS else answer


def _apply(kube: Kube, manifest: Manifest, uid: str) -> ApiObject | None:
    """Returns None if it was not applied: no object has that uid, or the object is being changed."""
    try:
        answer = kube.apply(manifest, uid=uid)
        if has_stale_fields(answer.managed_fields):
            kube.own_fields(answer)
            answer = kube.apply(manifest, uid=uid)
        return answer
    except Conflict:
        return None
    except ClusterRefused as refused:
        if refused.status == 422 and "metadata.uid" in refused.text:
            return None
        raise


def _find(kube: Kube, manifest: Manifest) -> ApiObject | None:
    kind, namespace, name = object_key(manifest)
    try:
        # The worker may not read Secrets; a dry run of an apply that changes nothing returns the labels.
        found = kube.look(manifest) if kind == "Secret" else kube.get(kind, name=name, namespace=namespace)
    except NotFound:
        return None
    # Without a resource version the object does not exist: the dry run would create it.
    return found if found.resource_version else None


def foreign_text(manifest: Manifest) -> str:
    kind, _namespace, name = object_key(manifest)
    return (
        f"A {kind} named {name} already exists that the portal did not create; it is not changed. Remove or rename it."
    )
