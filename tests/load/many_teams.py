"""A portal with any number of teams, written as rows: pages must not become slow with them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db import connection
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.utils import timezone

from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Grant, Membership, Namespace, Plan, QuotaLine, QuotaRequest, Tenant
from tests.support.rows import make, mirrored

GRANTS = 2
EVENTS = 12
DELIVERIES = 2
DECIDED = 1
# Rows of one statement; PostgreSQL takes 65,535 parameters.
BATCH = 2000


def many_teams(cluster: Cluster, *, teams: int, waiting: int, events: int = EVENTS) -> list[Tenant]:
    """Every team has an owner, two grants, decided requests, events and sent emails; `waiting` of them have a pending
    request. The hardware is mirrored; statistics are fresh, as with autovacuum.
    """
    mirrored.hardware_seen(cluster)
    classes = [make.gpu_class(cluster, slug=f"class-{number}", promise_limit=10 * teams) for number in range(8)]
    found = Tenant.objects.bulk_create(
        (Tenant(slug=f"team-{n}", name=f"Team {n}") for n in range(teams)), batch_size=BATCH
    )
    Namespace.objects.bulk_create(
        (Namespace(tenant=one, cluster=cluster, name=one.slug, due_at=None, observed_generation=1) for one in found),
        batch_size=BATCH,
    )
    owners = User.objects.bulk_create(
        (User(email=f"owner-{n}@example.org", name=f"Owner {n}", password="!") for n in range(teams)), batch_size=BATCH
    )
    Membership.objects.bulk_create(
        (
            Membership(tenant=team, user=owner, role=Membership.Role.OWNER)
            for team, owner in zip(found, owners, strict=True)
        ),
        batch_size=BATCH,
    )
    _grants(found, classes)
    _requests(found, owners, classes, waiting)
    _told(found, owners, events)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return found


def _grants(teams: Sequence[Tenant], classes: Sequence[GpuClass]) -> None:
    """The grants end on twenty different days."""
    now = timezone.now()
    Grant.objects.bulk_create(
        (
            Grant(
                tenant=team,
                gpu_class=classes[(number + which) % len(classes)],
                units=1 + number % 4,
                period=DateTimeTZRange(now - timedelta(days=30), _midnight(30 + number % 20)),
            )
            for number, team in enumerate(teams)
            for which in range(GRANTS)
        ),
        batch_size=BATCH,
    )


def _requests(teams: Sequence[Tenant], owners: Sequence[User], classes: Sequence[GpuClass], waiting: int) -> None:
    now, state = timezone.now(), QuotaLine.State
    states = [state.APPROVED] * (DECIDED * len(teams)) + [state.PENDING] * waiting
    requests = QuotaRequest.objects.bulk_create(
        (
            QuotaRequest(
                tenant=teams[number % len(teams)],
                filed_by=owners[number % len(teams)],
                filed_at=now,
                justification="For the next training.",
            )
            for number in range(len(states))
        ),
        batch_size=BATCH,
    )
    Plan.objects.bulk_create(
        (Plan(request=request, due_at=None, observed_generation=1, made_at=now) for request in requests),
        batch_size=BATCH,
    )
    QuotaLine.objects.bulk_create(
        (
            QuotaLine(
                request=request,
                tenant=request.tenant,
                gpu_class=classes[number % len(classes)],
                asked_units=2,
                asked_from=now,
                asked_until=_midnight(60 + number % 20),
                state=wanted,
                **({} if wanted == state.PENDING else _decided(number)),
            )
            for number, (request, wanted) in enumerate(zip(requests, states, strict=True))
        ),
        batch_size=BATCH,
    )


def _decided(number: int) -> dict[str, object]:
    now = timezone.now()
    return {
        "decided_units": 1 + number % 2,
        "decided_from": now - timedelta(days=30),
        "decided_until": _midnight(60 + number % 20),
        "decided_at": now - timedelta(days=30),
        "rule": "decrease",
    }


def _told(teams: Sequence[Tenant], owners: Sequence[User], events: int) -> None:
    verbs = ("request.filed", "request.decided", "member.added", "workload.launched", "namespace.changed")
    now = timezone.now()
    found = Event.objects.bulk_create(
        (
            Event(
                actor=owner.name,
                actor_id=owner.pk,
                via="page",
                verb=verbs[number % len(verbs)],
                tenant=team.slug,
                row=f"tenants.tenant.{team.pk}",
                name=team.slug,
            )
            for number in range(events)
            for team, owner in zip(teams, owners, strict=True)
        ),
        batch_size=BATCH,
    )
    by_id = {owner.pk: owner for owner in owners}
    Delivery.objects.bulk_create(
        (
            Delivery(
                event=event, user=by_id[event.actor_id or 0], subject="Told", body="Told.", due_at=None, sent_at=now
            )
            for event in found[: DELIVERIES * len(teams)]
        ),
        batch_size=BATCH,
    )


def _midnight(days: int) -> object:
    return timezone.now().replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=days)
