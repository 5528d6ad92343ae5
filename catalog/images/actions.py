"""The only code that changes images of the catalog."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from accounts.core.actor import Actor
from accounts.events.actions import record
from catalog.classes import policy as class_policy
from catalog.classes.actions import refuse_invalid
from catalog.images import policy as image_policy
from catalog.models import Image
from portal.core.errors import NOT_FOUND, get_or_refuse, refuse, refuse_if

IMAGE_FIELDS = (
    "version", "reference", "digest", "contents", "vendor", "min_cuda", "deprecated_since", "successor", "kind",
    "position",
)  # fmt: skip
# Between the positions of two images of a kind, so that a file can place another one between them.
POSITION_STEP = 10


@transaction.atomic
def put_image(*, name: str, by: Actor, **values: Any) -> Image:
    """Creates or changes the image of that name; the same values again change nothing. `successor` is an Image or None.

    Raises Refused: not_allowed (403), unknown_field, bad_successor, invalid (422).
    """
    refuse_if(class_policy.may_edit(by))
    if unknown := sorted(set(values) - set(IMAGE_FIELDS)):
        raise refuse("unknown_field", f"An image has no editable field '{unknown[0]}'.", field=unknown[0])
    known = Image.objects.select_for_update().filter(name=name).first()
    image = known or Image(name=name)
    before = {field: getattr(known, field) for field in values} if known else {}
    changed = {field: value for field, value in values.items() if known is None or before[field] != value}
    if known and not changed:
        return known
    for field, value in changed.items():
        setattr(image, field, value)
    refuse_invalid(image)
    _refuse_misfit(image)
    image.save()
    record(by, "image.put", image, before=_named({f: before[f] for f in changed if known}), after=_named(changed))
    return image


@transaction.atomic
def move_image(image_id: int, *, earlier: bool, by: Actor) -> Image:
    """Changes places with the one before or after it in the list of its kind; at the end of the list nothing changes.
    An event for each image whose position changes: all of the kind, if they had no positions of their own yet.

    Raises Refused: not_allowed (403), not_found (404).
    """
    refuse_if(class_policy.may_edit(by))
    image = get_or_refuse(Image.objects.all(), pk=image_id)
    rows = list(Image.objects.select_for_update().filter(kind=image.kind))
    places = {row.pk: place for place, row in enumerate(rows)}
    # Removed, or made an image of another kind, while the rows were locked by somebody else.
    refuse_if(None if image_id in places else NOT_FOUND)
    place = places[image_id]
    other = place - 1 if earlier else place + 1
    if 0 <= other < len(rows):
        rows[place], rows[other] = rows[other], rows[place]
        for number, row in enumerate(rows, start=1):
            _place(row, number * POSITION_STEP, by)
    return image


def _place(image: Image, position: int, by: Actor) -> None:
    if image.position == position:
        return
    before, image.position = image.position, position
    image.save(update_fields=["position"])
    record(by, "image.put", image, before={"position": before}, after={"position": position})


def _refuse_misfit(image: Image) -> None:
    if problem := image_policy.image_problem(image.reference, image.digest, image.vendor, image.min_cuda):
        field, text = problem
        raise refuse("invalid", text, field=field)
    successor = image.successor
    if successor and successor.name == image.name:
        raise refuse(
            "bad_successor",
            "An image cannot be its own successor; enter another image, or leave it empty.",
            field="successor",
        )
    if successor and successor.kind != image.kind:
        text = f"{successor.name} is for a {successor.kind}; a successor of {image.name} must be for a {image.kind}."
        raise refuse("bad_successor", text, field="successor")


def _named(values: dict[str, Any]) -> dict[str, Any]:
    return {field: value.name if isinstance(value, Image) else value for field, value in values.items()}


@transaction.atomic
def remove_image(image_id: int, *, by: Actor) -> None:
    """Removes it from the catalog; runs keep the reference with which they were launched."""
    refuse_if(class_policy.may_edit(by))
    image = get_or_refuse(Image.objects.select_for_update(), pk=image_id)
    record(by, "image.removed", image, before={"reference": image.reference})
    image.delete()
