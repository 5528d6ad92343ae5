"""Closing a team: preconditions, times, notifications, and what other teams get. In the cluster: test_close_live.py."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.utils import timezone

from accounts.core.actor import Actor, system_actor
from accounts.events.actions import record
from accounts.models import Delivery, Event, Scope, User
from catalog.models import GpuClass, Pool
from cluster.apply.types import PREVIOUS_CLUSTER
from cluster.models import AppliedObject, MirrorObject
from portal.core.errors import Refused
from tenants.core import queries
from tenants.grants import queries as grant_queries
from tenants.grants.overcommit import queries as overcommit_queries
from tenants.grants.promises import Promise
from tenants.lifecycle import actions as lifecycle_actions
from tenants.lifecycle.closing import actions as closing_actions
from tenants.lifecycle.closing import schedule
from tenants.models import Grant, Membership, Namespace, Tenant
from tests.support.http.callers import caller, send
from tests.support.http.pages import page
from tests.support.rows import make, running

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def close(row: Namespace, by: User, **terms: Any) -> Namespace:
    return lifecycle_actions.set_namespace_state(row.pk, to="closed", by=page(by), **terms)


def move_back(row: Namespace, by: timedelta) -> Namespace:
    """Moves the stored times back, as if the team had been closed that much earlier."""
    row.refresh_from_db()
    assert row.closes_at is not None
    assert row.volumes_until is not None
    Namespace.objects.filter(pk=row.pk).update(closes_at=row.closes_at - by, volumes_until=row.volumes_until - by)
    row.refresh_from_db()
    return row


def refused(verb: Any) -> str:
    with pytest.raises(Refused) as error:
        verb()
    return error.value.code


def told(user: User) -> list[str]:
    return list(Delivery.objects.filter(user=user).order_by("pk").values_list("subject", flat=True))


# ---- periods of closing ------------------------------------------------------------------------------------------


def test_a_day_to_take_it_back_and_a_month_for_the_volumes(namespace_a: Namespace, olga: User) -> None:
    before = queries.database_now()
    row = close(namespace_a, olga)
    assert row.closes_at is not None
    assert row.volumes_until is not None
    assert before + 24 * HOUR <= row.closes_at <= queries.database_now() + 24 * HOUR
    assert row.volumes_until == row.closes_at + 30 * DAY
    assert row.gone_at is None
    row = lifecycle_actions.set_namespace_state(row.pk, to="active", by=page(olga))
    assert (row.wanted, row.closes_at, row.volumes_until) == ("active", None, None)


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"grace_hours": -1}, "bad_grace"),
        ({"grace_hours": 337}, "bad_grace"),
        ({"keep_days": -1}, "bad_keep"),
        ({"keep_days": 91}, "bad_keep"),
        ({"grace_hours": 336, "keep_days": 90}, ""),
        ({"grace_hours": 0, "keep_days": 0}, ""),
    ],
)
def test_times_have_bounds(namespace_a: Namespace, olga: User, terms: dict[str, int], code: str) -> None:
    if not code:
        close(namespace_a, olga, **terms)
        return
    assert refused(lambda: close(namespace_a, olga, **terms)) == code
    namespace_a.refresh_from_db()
    assert namespace_a.wanted == "active"
    assert not Event.objects.filter(verb="namespace.changed").exists()


@pytest.mark.parametrize("wanted", ["active", "suspended", "closed"])
@pytest.mark.parametrize("field", ["grace_hours", "keep_days"])
def test_a_time_below_zero_is_refused_whatever_is_wanted(
    namespace_a: Namespace, olga: User, wanted: str, field: str
) -> None:
    """A bound that only closing has read was accepted, and ignored, by the others."""
    body = {"wanted": wanted, field: -1}
    answer = send(caller(olga, Scope.ADMIN), "PATCH", "/api/v1/teams/team-a/namespace", body)
    code = {"grace_hours": "bad_grace", "keep_days": "bad_keep"}[field]
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, code, field)
    assert "-1" in answer.json()["message"]
    namespace_a.refresh_from_db()
    assert namespace_a.wanted == "active"


def test_after_the_grace_nobody_takes_it_back(namespace_a: Namespace, olga: User) -> None:
    move_back(close(namespace_a, olga), 24 * HOUR)
    for to in ("active", "suspended", "closed"):
        assert (
            refused(lambda to=to: lifecycle_actions.set_namespace_state(namespace_a.pk, to=to, by=page(olga)))
            == "closed"
        )


def test_within_the_grace_only_resuming_is_possible(namespace_a: Namespace, olga: User) -> None:
    closed = close(namespace_a, olga)
    assert refused(lambda: close(namespace_a, olga, grace_hours=0)) == "closed"
    assert (
        refused(lambda: lifecycle_actions.set_namespace_state(namespace_a.pk, to="suspended", by=page(olga)))
        == "closed"
    )
    namespace_a.refresh_from_db()
    assert namespace_a.closes_at == closed.closes_at
    lifecycle_actions.set_namespace_state(namespace_a.pk, to="active", by=page(olga))


def test_a_token_needs_the_right_scope(namespace_a: Namespace, olga: User) -> None:
    by = Actor(user=olga, via="token x", scopes=frozenset({Scope.READ, Scope.REQUEST}))
    assert refused(lambda: lifecycle_actions.set_namespace_state(namespace_a.pk, to="closed", by=by)) == "missing_scope"


@pytest.mark.parametrize(
    "columns",
    [
        {"wanted": "closed"},
        {"closes_at": timezone.now()},
        {"volumes_until": timezone.now()},
        {"gone_at": timezone.now()},
        {"wanted": "closed", "closes_at": timezone.now(), "volumes_until": timezone.now() - HOUR},
        {"wanted": "active", "closes_at": timezone.now(), "volumes_until": timezone.now() + HOUR},
    ],
)
def test_the_database_keeps_the_times_true(namespace_a: Namespace, columns: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Namespace.objects.filter(pk=namespace_a.pk).update(**columns)


# ---- grants of a closing team ------------------------------------------------------------------------------------


def test_units_stay_promised_while_it_can_be_taken_back(
    namespace_a: Namespace, team_a: Tenant, a100: GpuClass, olga: User
) -> None:
    make.grant(team_a, a100, units=4)
    close(namespace_a, olga)
    assert grant_queries.promised_units(namespace_a.cluster, queries.database_now()) == {a100.pk: 4}
    lifecycle_actions.set_namespace_state(namespace_a.pk, to="active", by=page(olga))
    assert grant_queries.units_in_force(team_a.pk, queries.database_now()) == {a100.pk: 4}


def test_closing_at_once_gives_every_unit_back_in_the_same_transaction(
    namespace_a: Namespace, team_a: Tenant, a100: GpuClass, olga: User
) -> None:
    Pool.objects.create(cluster=a100.cluster, due_at=None)
    now = timezone.now()
    running = make.grant(team_a, a100, units=4, since=now - DAY, until=now + 9 * DAY)
    boost = make.grant(team_a, a100, units=2, since=now - DAY, until=now + 2 * DAY, kind=Grant.Kind.BOOST)
    later = make.grant(team_a, a100, units=8, since=now + 9 * DAY, until=now + 20 * DAY)
    over = make.grant(team_a, a100, units=1, since=now - 9 * DAY, until=now - 2 * DAY, kind=Grant.Kind.BOOST)
    in_grace = make.grant(team_a, a100, units=3, since=now - 9 * DAY, until=now - HOUR, kind=Grant.Kind.BOOST)
    other = make.grant(make.tenant(a100.cluster, slug="team-b"), a100, units=5, since=now - DAY, until=now + DAY)
    assert free_for_others(a100, limit=16, units=12) is False

    row = close(namespace_a, olga, grace_hours=0)
    closes_at = row.closes_at
    assert closes_at is not None
    now = queries.database_now()
    assert grant_queries.promised_units(a100.cluster, now) == {a100.pk: 5}
    assert grant_queries.unlendable_units(a100.cluster, now) == {a100.pk: 5}, (
        "no grace holds units of a team that runs nothing"
    )
    assert free_for_others(a100, limit=17, units=12) is True
    assert not Grant.objects.filter(pk=later.pk).exists()
    for grant, end, grace in ((running, closes_at, 0 * HOUR), (boost, closes_at, 0 * HOUR)):
        grant.refresh_from_db()
        assert (grant.period.upper, grant.grace) == (end, grace)
    for grant in (over, other):
        before = grant.period.upper, grant.grace
        grant.refresh_from_db()
        assert (grant.period.upper, grant.grace) == before
    in_grace.refresh_from_db()
    assert in_grace.period.upper + in_grace.grace == closes_at
    event = Event.objects.get(verb="namespace.changed")
    assert [(one["units"], one["class"]) for one in event.after["grants"]] == [
        (4, a100.slug),
        (2, a100.slug),
        (8, a100.slug),
    ]
    assert Pool.objects.get().due_at is not None, "what nobody was promised is lent to everybody"


def free_for_others(gpu_class: GpuClass, *, limit: int, units: int) -> bool:
    """Returns whether another team could be promised that many units for one day, beginning now."""
    now = queries.database_now()
    promised = Promise(units, now, now + DAY)
    return overcommit_queries.overcommit_of(0, gpu_class, promised, is_base=True, limit=limit, at=now) is None


def test_when_the_grace_is_over_the_grants_end_with_it(
    namespace_a: Namespace, team_a: Tenant, a100: GpuClass, olga: User
) -> None:
    grant = make.grant(team_a, a100, units=4, since=timezone.now() - 5 * DAY)
    row = move_back(close(namespace_a, olga), 25 * HOUR)
    for _ in range(2):
        assert closing_actions.finalize_closing(row, queries.database_now())
    grant.refresh_from_db()
    assert grant.period.upper == row.closes_at, "as announced, however late a worker comes"
    [event] = Event.objects.filter(verb="namespace.closed")
    assert (event.actor, event.tenant, [one["units"] for one in event.after["grants"]]) == (
        "system closing",
        "team-a",
        [4],
    )


def test_what_is_taken_back_while_a_worker_comes_is_not_carried_out(
    namespace_a: Namespace, team_a: Tenant, a100: GpuClass, olga: User
) -> None:
    grant = make.grant(team_a, a100, units=4)
    row = close(namespace_a, olga)
    lifecycle_actions.set_namespace_state(namespace_a.pk, to="active", by=page(olga))
    assert row.closes_at is not None
    assert not closing_actions.finalize_closing(row, row.closes_at + HOUR)
    grant.refresh_from_db()
    assert grant.period.upper > queries.database_now()
    assert not Event.objects.filter(verb="namespace.closed").exists()


# ---- notifications and reminders ---------------------------------------------------------------------------------


def test_owners_and_managers_are_told_each_step_once(
    namespace_a: Namespace, team_a: Tenant, alice: User, bob: User, charlie: User, olga: User
) -> None:
    make.member(team_a, charlie, Membership.Role.MANAGER)
    for name in ("data", "home"):
        AppliedObject.objects.create(
            cluster=namespace_a.cluster, owner="x", kind="PersistentVolumeClaim", namespace=namespace_a.name, name=name
        )
    row = close(namespace_a, olga, because="The course is over.")
    assert row.closes_at is not None
    assert row.volumes_until is not None
    letter = Delivery.objects.get(user=alice)
    assert letter.subject == "Team A is being closed: its objects in the cluster will be deleted"
    assert "The course is over." in letter.body
    assert f"Running workloads are stopped on {row.closes_at:%d %b %Y, %H:%M %Z}" in letter.body
    assert f"2 volumes are deleted with all data on {row.volumes_until:%d %b %Y, %H:%M %Z}" in letter.body

    announced = list(Delivery.objects.values_list("pk", flat=True))
    for days, expected in ((0, 0), (22, 0), (23, 1), (29, 1)):
        row = move_back(row, row.closes_at + days * DAY - queries.database_now()) if days else row
        for _ in range(2):
            closing_actions.remind_of_volume_deletion(row, queries.database_now(), claims=2)
        assert Event.objects.filter(verb="namespace.reminded").count() == expected, days
    reminder = Delivery.objects.exclude(pk__in=announced).get(user=charlie)
    assert row.volumes_until is not None
    assert "Its 2 volumes are deleted with all data on" in reminder.body
    for _ in range(2):
        closing_actions.mark_deleted(row, queries.database_now())
    assert told(alice) == told(charlie)
    assert told(alice)[2] == "Team A was deleted from the cluster"
    assert "including volumes" in Delivery.objects.get(user=alice, subject="Team A was deleted from the cluster").body
    assert len(told(alice)) == 3
    assert told(bob) == []


@pytest.mark.parametrize("origin", Namespace.Origin.values)
def test_volumes_of_a_cluster_that_was_replaced_are_not_called_deleted(
    namespace_a: Namespace, alice: User, olga: User, origin: str
) -> None:
    for name, code in (("data", PREVIOUS_CLUSTER), ("models", PREVIOUS_CLUSTER), ("new", "")):
        AppliedObject.objects.create(
            cluster=namespace_a.cluster, owner="x", kind="PersistentVolumeClaim", namespace=namespace_a.name, name=name,
            code=code, sent_at=timezone.now() - DAY,
        )  # fmt: skip
    record(system_actor("manage.py"), "cluster.replaced", namespace_a.cluster, before={"uid": "old"})
    Namespace.objects.update(origin=origin)
    row = close(namespace_a, olga, keep_days=20)
    row = move_back(row, 24 * HOUR + 14 * DAY)
    closing_actions.remind_of_volume_deletion(row, queries.database_now(), claims=3)
    closing_actions.mark_deleted(row, queries.database_now())
    where = "2 volumes (data, models) were made in the previous cluster with the uid old, which was replaced by another"
    for subject in ("The volumes of Team A will be deleted", "Team A was deleted"):
        assert where in Delivery.objects.get(user=alice, subject__startswith=subject).body
    letter = Delivery.objects.get(user=alice, subject="Team A was deleted from the cluster")
    assert "including volumes" not in letter.body
    assert "the portal does not delete what is there" in letter.body
    after = Event.objects.get(verb="namespace.gone").after
    assert after == {"volumes_left": ["data", "models"], "clusters": ["old"]}
    assert list(AppliedObject.objects.values_list("name", flat=True)) == ["new"]


def left_behind(row: Namespace, *names: str, new: int = 0) -> None:
    """Claims of a cluster that was replaced, and `new` ones of this one."""
    codes = dict.fromkeys(names, PREVIOUS_CLUSTER) | {f"new-{number}": "" for number in range(new)}
    for name, code in codes.items():
        AppliedObject.objects.create(
            cluster=row.cluster, owner="x", kind="PersistentVolumeClaim", namespace=row.name, name=name, code=code,
            result="applied", sent_at=timezone.now() - DAY,
        )  # fmt: skip
    record(system_actor("manage.py"), "cluster.replaced", row.cluster, before={"uid": "old"})


def restored(row: Namespace, name: str) -> None:
    MirrorObject.objects.create(
        cluster_id=row.cluster_id, kind="PersistentVolumeClaim", namespace=row.name, name=name, uid=f"uid-{name}",
        resource_version=1, created_at=timezone.now(), record={},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("new", "shown", "is_known", "said", "subject"),
    [
        (1, (), True, "Its 1 volume in this cluster is deleted with all data on", "The volumes of Team A will be"),
        (1, ("data",), True, "Its 2 volumes in this cluster are deleted with all", "The volumes of Team A will be"),
        (1, (), False, "Its volumes in this cluster are deleted with all data", "The volumes of Team A will be"),
        (0, (), True, "It has no volumes in this cluster.", "Team A will be deleted from the cluster on"),
    ],
)
def test_volumes_of_a_cluster_that_was_replaced_are_counted_once(
    namespace_a: Namespace, alice: User, olga: User, new: int, shown: tuple[str, ...], is_known: bool, said: str,
    subject: str,
) -> None:  # fmt: skip
    left_behind(namespace_a, "data", "models", new=new)
    if is_known:
        running.known(namespace_a.cluster_id, "PersistentVolumeClaim")
    for name in shown:
        restored(namespace_a, name)
    row = move_back(close(namespace_a, olga, keep_days=20), 24 * HOUR + 14 * DAY)
    announced = Delivery.objects.get(user=alice)
    closing_actions.remind_of_volume_deletion(row, queries.database_now(), claims=2 + new)
    reminder = Delivery.objects.exclude(pk=announced.pk).get(user=alice)
    assert reminder.subject.startswith(subject)
    assert said in reminder.body
    assert said.replace("It has", "The team has") in announced.body
    left = "2 volumes (data, models) were made in the previous cluster with the uid old, which was replaced by another"
    for letter in (announced, reminder):
        assert left in letter.body
    after = Event.objects.get(verb="namespace.reminded").after
    assert after["volumes"] == (new + len(shown) if is_known else None)
    assert after["volumes_left"] == ["data", "models"]


def test_a_second_closing_is_told_again(namespace_a: Namespace, olga: User) -> None:
    for number in (1, 2):
        row = move_back(close(namespace_a, olga, keep_days=20), 24 * HOUR + 14 * DAY)
        closing_actions.remind_of_volume_deletion(row, queries.database_now(), claims=1)
        assert Event.objects.filter(verb="namespace.reminded").count() == number
        Namespace.objects.update(wanted="active", closes_at=None, volumes_until=None)


def test_volumes_that_are_kept_for_a_week_have_no_reminder_of_their_own(namespace_a: Namespace, olga: User) -> None:
    row = move_back(close(namespace_a, olga, keep_days=7), 24 * HOUR)
    closing_actions.remind_of_volume_deletion(row, queries.database_now(), claims=1)
    assert not Event.objects.filter(verb="namespace.reminded").exists()


def test_the_next_look_is_at_the_reminder_then_at_the_end(namespace_a: Namespace, olga: User) -> None:
    row = close(namespace_a, olga)
    assert row.closes_at is not None
    assert row.volumes_until is not None
    assert schedule.next_volume_check(row, row.closes_at) == row.volumes_until - 7 * DAY
    assert schedule.next_volume_check(row, row.volumes_until - 7 * DAY) == row.volumes_until
    assert schedule.next_volume_check(row, row.volumes_until) is None


def test_a_grant_that_begins_when_the_grace_ends_never_begins(
    namespace_a: Namespace, team_a: Tenant, a100: GpuClass, olga: User
) -> None:
    row = close(namespace_a, olga)
    assert row.closes_at is not None
    Grant.objects.create(
        tenant=team_a, gpu_class=a100, units=1, period=DateTimeTZRange(row.closes_at, row.closes_at + DAY)
    )
    with transaction.atomic():
        closing_actions.end_grants(row, row.closes_at)
    assert not Grant.objects.exists()
