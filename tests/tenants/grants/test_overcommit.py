"""The sums that the database computes equal the sums over the grants, read one by one in Python."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.core import queries
from tenants.grants import promises
from tenants.grants.overcommit import queries as overcommit_queries
from tenants.grants.promises import Step
from tenants.models import Grant, Tenant
from tests.support.rows import make

pytestmark = pytest.mark.django_db

# Start and end in days from now: two ended, two in force, one that renews, two later.
PERIODS = ((-9, -2), (-9, 0), (-9, 3), (0, 3), (3, 8), (5, 6), (7, 9))


def test_the_steps_of_a_class_are_the_curve_of_its_grants(team_a: Tenant, a100: GpuClass, cluster: Cluster) -> None:
    other = make.gpu_class(cluster, slug="other")
    at = queries.database_now()
    for units, (start, end) in enumerate(PERIODS, start=1):
        period = DateTimeTZRange(at + timedelta(days=start), at + timedelta(days=end))
        kind = Grant.Kind.BOOST
        Grant.objects.create(tenant=team_a, gpu_class=a100, kind=kind, units=units, period=period)
    grants = map(overcommit_queries.promise_of, Grant.objects.filter(gpu_class=a100))
    found = overcommit_queries.promise_steps([a100.pk, other.pk], at=at)
    assert found[a100.pk] == promises.curve(grants, at, at + timedelta(days=99))
    assert found[other.pk] == [Step(at, 0)]
