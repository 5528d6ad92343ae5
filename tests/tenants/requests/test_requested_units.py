"""How many units pending requests of all teams would add."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import QuotaLine, QuotaRequest, Tenant
from tenants.requests.queries import requested_units
from tests.support.rows import make

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("kind", "units", "state", "added"),
    [
        ("base", 10, "pending", 6),
        ("base", 3, "pending", 0),
        ("boost", 3, "pending", 3),
        ("reclaim", 1, "pending", 0),
        ("base", 10, "denied", 0),
    ],
)
def test_what_a_line_adds(
    team_a: Tenant, a100: GpuClass, alice: User, kind: str, units: int, state: str, added: int
) -> None:
    make.grant(team_a, a100, units=4)
    _line(team_a, a100, alice, kind, units, state)
    assert requested_units([a100.pk], at=timezone.now()).get(a100.pk, 0) == added


def test_teams_are_added_up_and_other_classes_left_out(
    cluster: Cluster, team_a: Tenant, a100: GpuClass, alice: User
) -> None:
    other = make.gpu_class(cluster, slug="other")
    make.grant(team_a, a100, units=4)
    _line(team_a, a100, alice, "base", 6, "pending")
    _line(make.tenant(cluster, slug="team-z"), a100, alice, "base", 5, "pending")
    _line(team_a, other, alice, "base", 9, "pending")
    assert requested_units([a100.pk], at=timezone.now()) == {a100.pk: 2 + 5}


def _line(tenant: Tenant, gpu_class: GpuClass, by: User, kind: str, units: int, state: str) -> None:
    now = timezone.now()
    request = QuotaRequest.objects.create(tenant=tenant, filed_by=by, justification="Training.")
    QuotaLine.objects.create(
        request=request, tenant=tenant, gpu_class=gpu_class, kind=kind, asked_units=units, asked_from=now,
        asked_until=now + timedelta(days=9), state=state,
    )  # fmt: skip
