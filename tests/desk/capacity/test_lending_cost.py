"""The cost of lent units on a home page depends on the units in use of the class, not on the number of teams."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from desk.capacity.lending import LentUnits, _promised
from tenants.models import Grant, Namespace, Tenant
from tests.support.rows import make
from tests.support.rows.homes import cohort, lent, ready

pytestmark = pytest.mark.django_db


def hold(one: GpuClass, teams: int, *, units: int = 1, ends_in_days: int = 30) -> None:
    """Creates that number of teams, each with a grant and without runs."""
    now = timezone.now()
    there = Tenant.objects.count()
    found = Tenant.objects.bulk_create(Tenant(slug=f"idle-{there + n}", name=f"Idle {n}") for n in range(teams))
    period = DateTimeTZRange(now - timedelta(days=60), now + timedelta(days=ends_in_days))
    Grant.objects.bulk_create(Grant(tenant=team, gpu_class=one, units=units, period=period) for team in found)


def test_no_more_grants_are_read_than_decide_it(a100: GpuClass) -> None:
    hold(a100, 200)
    hold(a100, 50, ends_in_days=-1)
    now = timezone.now()
    assert _promised({a100.pk: 7}, now) == {a100.pk: 7}
    assert _promised({a100.pk: 1000}, now) == {a100.pk: 200}, "what is over is not promised"
    assert _promised({a100.pk: 1000}, now - timedelta(days=2)) == {a100.pk: 250}
    assert _promised({a100.pk: 1000}, now - timedelta(days=90)) == {}


@pytest.mark.parametrize(
    ("idle", "expected"), [(0, LentUnits(3, 3)), (2, LentUnits(1, 3)), (3, LentUnits(0, 3)), (200, LentUnits(0, 3))]
)
def test_it_says_the_same_as_if_all_were_added_up(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, bob: User, idle: int, expected: LentUnits
) -> None:
    """Three units are borrowed; each unit that idle teams hold may be one of the three."""
    make.grant(team_a, a100, units=4)
    borrower = make.tenant(namespace_a.cluster, slug="team-b").namespaces.get()
    ready(borrower, a100, "theirs", bob, units=3)
    cohort(namespace_a, a100, spare=0)
    hold(a100, idle)
    assert lent(namespace_a) == expected
