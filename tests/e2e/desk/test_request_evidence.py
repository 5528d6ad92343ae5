"""The facts of a request in a real browser: in both themes, on a desk and on a phone, folded and open."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Namespace, Tenant
from tenants.requests.decisions import actions
from tenants.requests.decisions.types import Decision
from tests.e2e.accessibility import look_at
from tests.support.rows import make, mirrored
from tests.support.rows.usage import file, looked, ran, used

pytestmark = pytest.mark.browser


def test_what_the_team_used_is_told_beside_what_it_asks(
    open_page: Callable[..., Page],
    a100: GpuClass,
    team_a: Tenant,
    namespace_a: Namespace,
    alice: User,
    bob: User,
    dana: User,
) -> None:
    make.gpu_class(
        a100.cluster,
        slug="a100-1g",
        name="A100 1g.10gb slice",
        partition="1g.10gb",
        resource="nvidia.com/mig-1g.10gb",
        weight="0.1429",
    )
    mirrored.hardware_seen(a100.cluster)
    looked(a100, hours=200)
    used(namespace_a, a100, peak=8, total=900)
    ran(namespace_a, a100, bob, units=2, waited=timedelta(seconds=30))
    ran(namespace_a, a100, alice, waited=timedelta(minutes=4))
    slug = a100.slug.replace("-", "_")
    before = file(team_a, alice, **{slug: 9})
    answer = Decision(before.lines.get().pk, approve=True, units=2, reason="Start with two, and tell me how it goes.")
    actions.decide_request(before.pk, [answer], by=Actor(dana, "page"))
    filed = file(team_a, alice, **{slug: 4, "a100_1g": 3})
    page = open_page(f"/requests/{filed.pk}", as_user=dana)
    expect(page.get_by_role("row", name="Peak, 30 days 8 0")).to_be_visible()
    expect(page.get_by_role("row", name="Requested, in physical GPUs 4 0.43")).to_be_visible()
    expect(page.get_by_text("4 GPU-hours")).to_be_hidden()
    page.get_by_text("Usage by member").press("Enter")
    page.get_by_text("Earlier requests").click()
    expect(page.get_by_text("4 GPU-hours")).to_be_visible()
    expect(page.get_by_role("link", name="requested 9 GPUs in total, granted 2")).to_be_visible()
    look_at(page)


def test_on_a_phone_the_decision_is_one_tap_away(
    open_page: Callable[..., Page], a100: GpuClass, team_a: Tenant, namespace_a: Namespace, alice: User, dana: User
) -> None:
    mirrored.hardware_seen(a100.cluster)
    filed = file(team_a, alice, **{a100.slug.replace("-", "_"): 4})
    page = open_page(f"/requests/{filed.pk}", as_user=dana, width=390)
    decision = page.get_by_role("heading", name="Decision")
    expect(decision).not_to_be_in_viewport()
    page.get_by_role("link", name="Go to the decision").click()
    expect(decision).to_be_in_viewport()
    look_at(page)
