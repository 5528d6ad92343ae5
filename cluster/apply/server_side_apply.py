"""Sends one object to the API server.

The first write is POST, so that an object of the same name that is not ours is reported and never adopted. Later writes
are server-side apply with the uid that the API server gave us, so that an object which somebody deleted and made again
is
not taken for ours."""

from __future__ import annotations

from cluster.apply.types import object_key
from cluster.client.errors import ClusterRefused, ClusterUnavailable, Conflict, NotFound
from cluster.client.kube import Kube
from cluster.client.managed_fields import has_stale_fields
from cluster.client.types import ApiObject
from cluster.manifests.metadata import OWNER_LABEL, Manifest

# Kinds with maps whose keys come and go.
KINDS_WITH_REMOVABLE_KEYS = frozenset({"ResourceQuota", "Secret"})


class ForeignObject(Exception):
    """An object of this name is not ours."""


def write_object(kube: Kube, owner: str, manifest: Manifest, uid: str) -> ApiObject:
    """Raises ClusterUnavailable where the API server is not done with the object: it changed under our hands, it has
    just gone, or several creations at once were counted against the namespace's quota.
    """
    if uid and (answer := _apply(kube, manifest, uid)):
        return answer
    # Gone; or made again by us, in a look that ended before it was written down; or by somebody else.
    found = _find(kube, manifest) if uid else None
    if found is None:
        try:
            return _create(kube, manifest)
        except Conflict as conflict:
            found = _find(kube, manifest)
            if found is None:
                # An apply without a uid would adopt whatever somebody makes in between.
                raise ClusterUnavailable(conflict.text) from conflict
    if found.uid != uid:
        if found.labels.get(OWNER_LABEL) != owner:
            raise ForeignObject(foreign_text(manifest))
        if answer := _apply(kube, manifest, kube.own_fields(found).uid):
            return answer
    raise ClusterUnavailable("Another client changed the object at the same time.")


def _create(kube: Kube, manifest: Manifest) -> ApiObject:
    """That the fields were applied is said at once where keys come and go, so that a plan shows what goes. Of other
    kinds every manifest has the same fields; it is said with their first change (see `_apply`), which spares a new
    namespace every second request.
    """
    answer = kube.create(manifest)
    return kube.own_fields(answer) if manifest["kind"] in KINDS_WITH_REMOVABLE_KEYS else answer


def _apply(kube: Kube, manifest: Manifest, uid: str) -> ApiObject | None:
    """None: not applied, the object of that uid is not there or is being changed."""
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
        # The worker may not read Secrets; an apply that changes nothing, tried only, answers with the labels.
        found = kube.look(manifest) if kind == "Secret" else kube.get(kind, name=name, namespace=namespace)
    except NotFound:
        return None
    # Without a version it is what a look at an absent object would make.
    return found if found.resource_version else None


def foreign_text(manifest: Manifest) -> str:
    kind, _namespace, name = object_key(manifest)
    return (
        f"A {kind} named {name} already exists that the portal did not create; it is not changed. Remove or rename it."
    )
