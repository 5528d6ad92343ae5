"""Creates and edits classes and images by the catalog's actions. A change of a class can be planned: the same actions,
undone afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Max

from accounts.core.actor import Actor
from accounts.rest.etag import etag_of
from catalog.classes import actions, commitments
from catalog.classes import queries as class_queries
from catalog.classes.policy import ClassCommitments
from catalog.file import diff
from catalog.images import actions as image_actions
from catalog.models import GpuClass, Image
from catalog.pool.reconcile import flavor_spec
from cluster.manifests import pool as manifests
from cluster.models import Cluster
from desk.catalog.file.queries import schema, stored_document
from portal.core.errors import Refusal, refuse_if
from tenants.models import Namespace

CHANGED = Refusal(
    "changed_meanwhile",
    "Somebody changed this class after you opened the page. Nothing was changed. Open it again and repeat your change.",
    status=409,
)
IMAGE_CHANGED = Refusal(
    "changed_meanwhile",
    "Somebody changed this image after you opened the page. Nothing was changed. Open it again and repeat your change.",
    status=409,
)
IMAGE_TAKEN = Refusal("name_taken", "An image of this name already exists; open it to change it.", "name", status=409)
# What the queue of a team takes from an open class beside its flavor.
_OF_QUEUES = ("borrowing_limit", "cpu_per_unit", "memory_gib_per_unit", "visibility")
# The order is changed beside the list.
IMAGE_FIELDS = tuple(name for name in image_actions.IMAGE_FIELDS if name != "position")


@dataclass(frozen=True)
class ClassPlan:
    """`lines`: as `catalog plan` prints them. `flavor`: what happens to its ResourceFlavor, "" if nothing. `queues`: of
    how many teams the queue and the limits are computed again because of what changes. `held`: None for a new class.
    """

    lines: list[str]
    flavor: str
    queues: int
    held: ClassCommitments | None


def version_of(one: GpuClass) -> str:
    return etag_of([getattr(one, name) for name in actions.EDITABLE_FIELDS])


@transaction.atomic
def save_class(
    one: GpuClass | None, *, cluster: Cluster, slug: str, values: dict[str, Any], seen: str, by: Actor
) -> GpuClass:
    """`one` None: a new draft. Raises Refused: changed_meanwhile (409), and what the catalog's actions refuse."""
    if one is None:
        return actions.create_class(slug=slug, cluster=cluster, by=by, **values)
    locked = GpuClass.objects.select_for_update(no_key=True).get(pk=one.pk)
    refuse_if(CHANGED if version_of(locked) != seen else None)
    return actions.edit_class(one.pk, by=by, **values)


def plan_class(
    one: GpuClass | None, *, cluster: Cluster, slug: str, values: dict[str, Any], seen: str, by: Actor
) -> ClassPlan:
    """What `save_class` would change; nothing is changed. Raises what it raises."""
    before = stored_document(cluster)
    with transaction.atomic():
        saved = save_class(one, cluster=cluster, slug=slug, values=values, seen=seen, by=by)
        after = stored_document(cluster)
        flavor = _flavor_change(one, saved)
        transaction.set_rollback(True)
    fields = schema()
    is_open = one is not None and one.life_cycle in class_queries.OPEN_STATES
    is_of_queues = any(one and getattr(one, name) != getattr(saved, name) for name in _OF_QUEUES)
    return ClassPlan(
        lines=diff.diff_lines(diff.diff_documents(before, after, fields), fields),
        flavor=flavor,
        queues=_open_teams(cluster) if is_open and (is_of_queues or flavor) else 0,
        held=commitments.commitments_of(one) if one else None,
    )


def version_of_image(image: Image) -> str:
    return etag_of([getattr(image, "successor_id" if name == "successor" else name) for name in IMAGE_FIELDS])


@transaction.atomic
def save_image(image: Image | None, *, name: str, values: dict[str, Any], seen: str, by: Actor) -> Image:
    """`image` None: a new one, the last of its kind. Raises Refused: changed_meanwhile, name_taken (409), and what the
    catalog's actions refuse.
    """
    if image is None:
        refuse_if(IMAGE_TAKEN if Image.objects.filter(name=name).exists() else None)
        last = Image.objects.filter(kind=values["kind"]).aggregate(last=Max("position"))["last"] or 0
        return image_actions.put_image(name=name, by=by, **values, position=last + image_actions.POSITION_STEP)
    locked = Image.objects.select_for_update().get(pk=image.pk)
    refuse_if(IMAGE_CHANGED if version_of_image(locked) != seen else None)
    return image_actions.put_image(name=locked.name, by=by, **values)


def _flavor_change(one: GpuClass | None, saved: GpuClass) -> str:
    """Compares the manifests that a worker would send."""
    if one is None or one.life_cycle not in class_queries.OPEN_STATES or not one.resource:
        return ""
    now, then = (manifests.resource_flavor(flavor_spec(each, owner="")) for each in (one, saved))
    return "" if now == then else class_queries.flavor_name(saved)


def _open_teams(cluster: Cluster) -> int:
    return Namespace.objects.filter(cluster=cluster).exclude(wanted=Namespace.Wanted.CLOSED).count()
