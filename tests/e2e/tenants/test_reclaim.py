"""Units are taken back by three people at three browsers, in both themes and widths."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Grant, QuotaRequest, Tenant
from tests.e2e.accessibility import look_at
from tests.support.rows import make

pytestmark = pytest.mark.browser


def test_an_operator_proposes_the_team_reads_and_an_approver_decides(
    team_a: Tenant, a100: GpuClass, alice: User, dana: User, olga: User, open_page: Callable[..., Page]
) -> None:
    GpuClass.objects.update(promise_limit=8)
    make.grant(team_a, a100, units=8)
    hers = open_page("/teams/team-a/grants", as_user=olga)
    hers.get_by_role("link", name="Take units back").click()
    look_at(hers)
    hers.get_by_label("New total").fill("8")
    hers.get_by_label("Why").fill("The course needs them.")
    hers.get_by_role("button", name="Propose it").click()
    expect(hers.get_by_text("holds 8 of")).to_be_visible()
    hers.get_by_label("New total").fill("3")
    hers.get_by_role("button", name="Propose it").click()
    hers.wait_for_url("**/requests/*")
    filed = QuotaRequest.objects.get()

    team = open_page("/teams/team-a/grants", as_user=alice)
    expect(team.get_by_text("It is proposed to leave 3 GPUs")).to_be_visible()
    look_at(team)

    decides = open_page(f"/requests/{filed.pk}", as_user=dana)
    look_at(decides)
    expect(decides.get_by_label("To", exact=True)).not_to_be_editable()
    decides.get_by_label("Grace, hours").fill("48")
    decides.get_by_role("button", name="Approve").click()
    expect(decides.get_by_text("what runs at the end goes on for 48 hours")).to_be_visible()
    cut, rest = Grant.objects.order_by("period")
    assert (cut.units, rest.units, rest.grace) == (8, 3, timedelta(hours=48))
    assert cut.period.upper == rest.period.lower > timezone.now() + timedelta(days=7)
    team.reload()
    expect(team.get_by_text("3 GPUs are left of it after its end")).to_be_visible()
