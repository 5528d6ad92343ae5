"""Whom an announcement reaches, which ones a person sees, and how many acknowledged it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Acknowledgement, Announcement, Tenant

_CLASSES = Announcement.classes.through.objects
_TEAMS = Announcement.teams.through.objects
TeamsOfClasses = Callable[[QuerySet[Any]], QuerySet[Any]]
_with_workloads: list[TeamsOfClasses] = []


def register_teams_with_workloads(found: TeamsOfClasses) -> None:
    """Workloads are in a higher app: `found` returns the keys of the teams that have some of these classes."""
    _with_workloads[:] = [found]


def _reached(announcement: Any) -> Q:
    """Filters Tenant rows: the teams themselves, or those that may use or hold one of the classes: by access, by a
    grant that is not over, or by a workload. `announcement`: a key, or a reference to that of an outer query.
    """
    classes = _CLASSES.filter(announcement=announcement)
    slugs = classes.values("gpuclass")
    deeper = OuterRef(announcement) if isinstance(announcement, OuterRef) else announcement
    inner = _CLASSES.filter(announcement=deeper).values("gpuclass")
    found = Q(pk__in=_TEAMS.filter(announcement=announcement).values("tenant"))
    found |= Q(Exists(classes.filter(gpuclass__visibility=GpuClass.Visibility.EVERYONE)))
    found |= Q(class_access__gpu_class__in=slugs)
    found |= Q(grants__gpu_class__in=slugs, grants__period__endswith__gt=Now())
    for teams in _with_workloads:
        found |= Q(pk__in=teams(inner))
    return found


def announcements_for(user_id: int) -> QuerySet[Announcement]:
    """Those in force whose audience this person is in, to be a part of another query."""
    theirs = Tenant.objects.filter(_reached(OuterRef(OuterRef("pk"))), memberships__user=user_id)
    return Announcement.objects.in_force().filter(Q(audience=Announcement.Audience.EVERYBODY) | Exists(theirs))


def banners_for(user_id: int) -> QuerySet[Announcement]:
    """Those that this person did not acknowledge, newest first."""
    done = Acknowledgement.objects.filter(announcement=OuterRef("pk"), user=user_id)
    return announcements_for(user_id).exclude(Exists(done))


def announcements_visible_to(by: Actor) -> QuerySet[Announcement]:
    """All for operators. For others those in force for them: all others do not exist."""
    return Announcement.objects.all() if by.operates else announcements_for(by.person.pk)


def people_reached(announcement: Announcement) -> QuerySet[User]:
    """Active people who are in the audience now."""
    people = User.objects.filter(is_active=True)
    if announcement.audience == Announcement.Audience.EVERYBODY:
        return people
    teams = Tenant.objects.filter(_reached(announcement.pk))
    return people.filter(pk__in=Tenant.objects.filter(pk__in=teams.values("pk")).values("memberships__user"))


def acknowledged_of(announcement: Announcement) -> tuple[int, int]:
    """How many people in the audience acknowledged it, of how many. One query."""
    done = Acknowledgement.objects.filter(announcement=announcement, user=OuterRef("pk"))
    people = people_reached(announcement).aggregate(done=Count("pk", filter=Q(Exists(done))), of=Count("pk"))
    return people["done"], people["of"]
