"""The log of catalog changes as one person may read it: classes that they may know of, images, no team's name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from accounts.actor import Actor
from accounts.models import Event
from accounts.queries import row_label
from catalog import changes
from catalog import queries as catalog
from catalog.changes import Field
from catalog.models import GpuClass
from tenants import queries as tenants

IMAGES = [verb for verb in changes.VERBS if verb.startswith("image.")]


@dataclass(frozen=True)
class Change:
    """`slug` "" where there is no page of it, or none any more."""

    at: datetime
    who: str
    verb: str
    name: str
    slug: str
    fields: tuple[Field, ...]


def events(by: Actor) -> tuple[QuerySet[Event], dict[str, GpuClass]]:
    """What this person may read, and the classes by the row label of their events. One query now, one for a page."""
    known = {row_label(one): one for one in tenants.known_classes(by, catalog.cluster())}
    found = Event.objects.filter(Q(verb__in=changes.VERBS, row__in=list(known)) | Q(verb__in=IMAGES))
    return found, known


def shown(found: Iterable[Event], known: dict[str, GpuClass]) -> list[Change]:
    slugs = {one.slug for one in known.values()}
    return [
        Change(
            at=event.at,
            who=event.actor,
            verb=changes.verb(event.verb, event.before, event.after),
            name=event.name,
            slug=known[event.row].slug if event.row in known and known[event.row].life_cycle in catalog.OPEN else "",
            fields=changes.fields(event.verb, event.before, event.after, known=slugs),
        )
        for event in found
    ]
