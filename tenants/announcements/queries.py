"""Whom an announcement reaches, which ones a person sees, and how many acknowledged it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Case, Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import JSONObject, Now

from accounts.core.actor import Actor
from accounts.models import User
from catalog.classes.queries import OPEN_STATES
from catalog.models import GpuClass
from tenants.models import Acknowledgement, Announcement, ClassAccess, Tenant

_CLASSES = Announcement.classes.through.objects
_TEAMS = Announcement.teams.through.objects
TeamsOfClasses = Callable[[QuerySet[Any]], QuerySet[Any]]
# Of an announcement, on every page.
_SHOWN = ("pk", "title", "body", "severity", "wants_acknowledgement")
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


def announcements_for(user_id: int | None) -> QuerySet[Announcement]:
    """Those in force whose audience this person is in, to be a part of another query. None: the person is the row of
    the outer query.
    """
    theirs = Tenant.objects.filter(_reached(OuterRef(OuterRef("pk"))), memberships__user=_person(user_id, 2))
    return Announcement.objects.in_force().filter(Q(audience=Announcement.Audience.EVERYBODY) | Exists(theirs))


def _person(user_id: int | None, depth: int) -> Any:
    """`depth`: of the query that names the person, below that of the person's row."""
    if user_id is not None:
        return user_id
    found = OuterRef("pk")
    for _level in range(depth - 1):
        found = OuterRef(found)
    return found


def banners_for(user_id: int | None) -> QuerySet[Announcement]:
    """Those that this person did not acknowledge, newest first."""
    done = Acknowledgement.objects.filter(announcement=OuterRef("pk"), user=_person(user_id, 2))
    return announcements_for(user_id).exclude(Exists(done))


def banner_rows(user_id: int | None) -> QuerySet[Announcement, Any]:
    """What pages show of `banners_for`, as JSON objects in `found`."""
    return banners_for(user_id).values(found=JSONObject(**{name: name for name in _SHOWN}, retiring=_retiring(user_id)))


def banner_rows_of(user_ids: Collection[int]) -> dict[int, list[dict[str, Any]]]:
    """By person. One query for all."""
    people = User.objects.filter(pk__in=user_ids).order_by().annotate(announced=ArraySubquery(banner_rows(None)))
    return dict(people.values_list("pk", "announced"))


def _retiring(user_id: int | None) -> ArraySubquery:
    """The classes of an announcement that are being retired, each with its successor ("" if there is none that is open
    and that the person may see). Only classes that the person may see.
    """
    rows = _CLASSES.filter(
        _may_see("gpuclass", user_id), announcement=OuterRef("pk"), gpuclass__life_cycle=GpuClass.LifeCycle.RETIRING
    ).order_by("gpuclass__slug")
    is_shown = Q(gpuclass__successor__life_cycle__in=OPEN_STATES) & _may_see("gpuclass__successor", user_id)
    successor = {
        name: Case(When(is_shown, then=F(f"gpuclass__successor__{name}")), default=Value(""))
        for name in ("slug", "name")
    }
    values: dict[str, Any] = {
        "gpu_class": "gpuclass__slug",
        "name": "gpuclass__name",
        "runs_until": "gpuclass__runs_until",
        "is_storage": Case(When(gpuclass__interface=GpuClass.Interface.STORAGE, then=True), default=False),
        "successor": successor["slug"],
        "successor_name": successor["name"],
    }
    return ArraySubquery(rows.values(found=JSONObject(**values)))


def _may_see(path: str, user_id: int | None) -> Q:
    """The class at `path` is for everybody, or for a team of the person. For rows two queries below the person's."""
    access = ClassAccess.objects.filter(gpu_class=OuterRef(f"{path}_id"), tenant__memberships__user=_person(user_id, 3))
    return Q(**{f"{path}__visibility": GpuClass.Visibility.EVERYONE}) | Q(Exists(access))


def own_announcements(user_id: int) -> QuerySet[Announcement]:
    """Those in force for this person, newest first, with `acknowledged_at` and `retiring` (texts of JSON objects)."""
    done = Acknowledgement.objects.filter(announcement=OuterRef("pk"), user=user_id)
    rows = announcements_for(user_id).annotate(acknowledged_at=Subquery(done.values("at")), retiring=_retiring(user_id))
    return rows.order_by("-id")


def is_over(announcement: Announcement, *, at: datetime) -> bool:
    return announcement.withdrawn_at is not None or announcement.period.upper <= at


def retiring_of(announcement: Announcement, user_id: int) -> list[dict[str, Any]]:
    """Its classes that are being retired, as this person may see them."""
    rows = Announcement.objects.filter(pk=announcement.pk).annotate(found=_retiring(user_id))
    found: list[dict[str, Any]] = rows.values_list("found", flat=True)[0]
    return found


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
