"""The log of catalog changes as one user may read it: visible classes, images, no team's name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from accounts.core.actor import Actor
from accounts.events.queries import row_label
from accounts.models import Event
from catalog.classes import queries as catalog
from catalog.file import change_log
from catalog.file.change_log import ChangedField
from catalog.models import GpuClass
from cluster.reads import queries as read_queries
from tenants.class_access import queries as class_access_queries

IMAGES = [verb for verb in change_log.EVENT_VERBS if verb.startswith("image.")]


@dataclass(frozen=True)
class CatalogChange:
    """`slug` is "" if it has no page, or no longer has one."""

    at: datetime
    who: str
    verb: str
    name: str
    slug: str
    fields: tuple[ChangedField, ...]


def events(by: Actor) -> tuple[QuerySet[Event], dict[str, GpuClass]]:
    """Returns events that this user may read, and classes by their events' row label. One query now, one per page."""
    known = {row_label(one): one for one in class_access_queries.known_classes(by, read_queries.current_cluster())}
    found = Event.objects.filter(Q(verb__in=change_log.EVENT_VERBS, row__in=list(known)) | Q(verb__in=IMAGES))
    return found, known


def catalog_changes(found: Iterable[Event], known: dict[str, GpuClass]) -> list[CatalogChange]:
    slugs = {one.slug for one in known.values()}
    return [
        CatalogChange(
            at=event.at,
            who=event.actor,
            verb=change_log.change_verb(event.verb, event.before, event.after),
            name=event.name,
            slug=known[event.row].slug
            if event.row in known and known[event.row].life_cycle in catalog.OPEN_STATES
            else "",
            fields=change_log.changed_fields(event.verb, event.before, event.after, known=slugs),
        )
        for event in found
    ]
