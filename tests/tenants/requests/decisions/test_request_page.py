"""The page of a request follows what the approver types, and stays true after the decision."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Grant, Plan, QuotaRequest, Tenant
from tests.support.rows import make
from tests.tenants.requests.test_views import answer, as_, filed, limited

__all__ = ["filed", "limited"]
pytestmark = pytest.mark.django_db


def text(client: Client, path: str, **typed: object) -> str:
    return re.sub(r"\s+", " ", client.get(path, typed).content.decode())


def test_what_is_typed_is_judged_not_what_was_requested(filed: QuotaRequest, limited: GpuClass, dana: User) -> None:
    line, path = filed.lines.get(), f"/requests/{filed.pk}"
    requested = as_(dana).get(path).context["page"]
    assert (requested["lines"][0]["fits_tone"], requested["over_promised"]) == ("good", "")
    page = as_(dana).get(path, {f"units-{line.pk}": 20}).context["page"]
    assert (page["lines"][0]["fits_tone"], page["lines"][0]["units_value"]) == ("bad", "20")
    assert f"{limited.name} would exceed its allocation limit of 8 by 12." in page["over_promised"]
    assert max(step.units for step in page["curves"][0].after) == 20
    assert max(step.units for step in requested["curves"][0].after) == 2


@pytest.mark.parametrize("units", ["", "-1", "many", "2" * 40])
@pytest.mark.parametrize("until", ["", "never", "0001-01-01", "2026-13-01"])
def test_what_cannot_be_read_is_judged_as_requested(filed: QuotaRequest, dana: User, units: str, until: str) -> None:
    line = filed.lines.get()
    page = (
        as_(dana).get(f"/requests/{filed.pk}", {f"units-{line.pk}": units, f"until-{line.pk}": until}).context["page"]
    )
    assert page["lines"][0]["fits_tone"] == "good"
    assert max(step.units for step in page["curves"][0].after) == 2


def test_a_period_that_is_typed_is_judged(filed: QuotaRequest, team_a: Tenant, limited: GpuClass, dana: User) -> None:
    """Another team has the rest from next month on."""
    other = make.tenant(limited.cluster, slug="other")
    now = timezone.now()
    make.grant(other, limited, units=7, since=now + timedelta(days=60), until=now + timedelta(days=90))
    line, path = filed.lines.get(), f"/requests/{filed.pk}"
    longer = f"{timezone.localdate() + timedelta(days=80):%Y-%m-%d}"
    assert as_(dana).get(path).context["page"]["over_promised"] == ""
    assert as_(dana).get(path, {f"until-{line.pk}": longer}).context["page"]["over_promised"]


def test_a_decided_line_keeps_the_total_that_it_replaced(
    team_a: Tenant, limited: GpuClass, filed: QuotaRequest, dana: User, alice: User
) -> None:
    """The list and the page of an approved request said "2 → 2" as soon as its grant was in force, and beside a
    temporary increase, which is not part of the total, before.
    """
    make.grant(team_a, limited, units=1)
    make.grant(team_a, limited, units=1, kind=Grant.Kind.BOOST)
    line = filed.lines.get()
    assert f"{line.gpu_class.name}, new total 1 → 2" in text(as_(dana), f"/requests/{filed.pk}")
    assert as_(dana).post(f"/requests/{filed.pk}/decide", answer(filed)).status_code == 302
    page, listed = (text(as_(alice), path) for path in (f"/requests/{filed.pk}", "/teams/team-a/requests"))
    assert f"{line.gpu_class.name}, new total 1 → 2" in page
    assert "1 → 2" in listed
    assert "2 → 2" not in listed + page


def test_a_line_that_nobody_decided_names_no_former_total(filed: QuotaRequest, alice: User) -> None:
    assert "0 → 2" in text(as_(alice), "/teams/team-a/requests")
    as_(alice).post(f"/requests/{filed.pk}/withdraw")
    assert "→" not in text(as_(alice), "/teams/team-a/requests")


def test_a_plan_is_fetched_until_it_is_there_and_is_past_after_the_decision(filed: QuotaRequest, dana: User) -> None:
    path, fetched = f"/requests/{filed.pk}", 'hx-trigger="every 2s"'
    assert fetched in text(as_(dana), path)
    planned = {
        "kind": "ResourceQuota", "namespace": "x", "name": "gpu-portal", "change": "change", "result": "accepted",
        "code": "", "text": "", "difference": ["- spec.hard.pods: 1", "+ spec.hard.pods: 2"],
    }  # fmt: skip
    Plan.objects.update(objects_planned=[planned], made_at=timezone.now())
    before = text(as_(dana), path)
    assert fetched not in before
    assert "Plan: 1 object would change" in before
    as_(dana).post(f"{path}/decide", answer(filed))
    after = text(as_(dana), path)
    assert "Plan before the decision: 1 object to change" in after
    assert "would change" not in after
