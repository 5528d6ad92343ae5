"""The decision form answers while the approver types: fit, tick and chart, without sending anything. The page of the
team follows the decision.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Namespace, Plan, Tenant
from tenants.requests.actions import withdraw_request
from tenants.requests.comments.actions import comment_request
from tenants.requests.decisions.actions import decide_request
from tenants.requests.decisions.types import Decision
from tests.e2e.accessibility import look_at
from tests.support.rows.usage import file

pytestmark = pytest.mark.browser


def test_units_that_are_typed_change_fit_and_chart(
    open_page: Callable[..., Page], team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, dana: User
) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=16)
    filed = file(team_a, alice, **{a100.slug.replace("-", "_"): 2})
    page = open_page(f"/requests/{filed.pk}", as_user=dana)
    expect(page.get_by_text("Within the allocation limit for the whole period.")).to_be_visible()
    page.get_by_label("Comment to").fill("We have 16.")
    units = page.locator(f"#units-{filed.lines.get().pk}")
    units.fill("20")
    expect(page.locator(".line-edit")).to_contain_text("would exceed its allocation limit of 16 by 4")
    expect(page.get_by_label("Overcommit anyway")).to_be_visible()
    expect(page.locator("#curves")).to_contain_text("20")
    expect(units).to_be_focused()
    expect(page.get_by_label("Comment to")).to_have_value("We have 16.")
    look_at(page)
    units.fill("16")
    expect(page.get_by_text("Within the allocation limit for the whole period.")).to_be_visible()
    expect(page.get_by_label("Overcommit anyway")).to_have_count(0)
    # The plan arrives by itself.
    expect(page.get_by_text("It appears here when it is ready")).to_be_visible()
    Plan.objects.update(objects_planned=[], made_at=timezone.now())
    expect(page.get_by_role("heading", name="Plan: no changes")).to_be_visible()


TELL = "version => window.stream.dispatchEvent(new MessageEvent('state_request', { data: version }))"


def test_the_page_of_the_team_follows_decision_and_comments(
    open_page: Callable[..., Page], team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, dana: User
) -> None:
    filed = file(team_a, alice, **{a100.slug.replace("-", "_"): 2})
    page = open_page(f"/requests/{filed.pk}", as_user=alice)
    page.evaluate("window.sameDocument = true")
    said = page.locator("#announce")
    writes = page.get_by_label("Comment", exact=True)
    writes.fill("We need them on")
    look_at(page)
    page.get_by_role("link", name="Withdraw…").click()
    comment_request(filed.pk, text="Which course?", by=Actor(dana, via="page"), asks_back=True)
    page.evaluate(TELL, "pending 1")
    expect(page.get_by_text("Which course?")).to_be_visible()
    expect(page.get_by_text("Pending, information requested", exact=True)).to_be_visible()
    expect(said).to_have_text(f"Request {filed.pk} is pending, information requested. 1 comment.")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.get_by_role("link", name="Cancel").click()
    line = filed.lines.get()
    decide_request(filed.pk, [Decision(line_id=line.pk, approve=False, reason="No GPUs.")], by=Actor(dana, via="page"))
    page.evaluate(TELL, "denied 1")
    expect(page.get_by_text("“No GPUs.”")).to_be_visible()
    expect(page.get_by_role("link", name="Withdraw…")).to_have_count(0)
    expect(said).to_have_text(f"Request {filed.pk} is denied. 1 comment.")
    expect(writes).to_have_value("We need them on")
    assert page.evaluate("[window.sameDocument, window.openStreams]") == [True, 1]


def test_nobody_else_follows(
    open_page: Callable[..., Page], team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, dana: User
) -> None:
    """An approver writes in the form; what is decided changes no more."""
    filed = file(team_a, alice, **{a100.slug.replace("-", "_"): 2})
    for person, streams in ((dana, 0), (alice, 1)):
        assert open_page(f"/requests/{filed.pk}", as_user=person).evaluate("window.openStreams") == streams
    withdraw_request(filed.pk, by=Actor(alice, via="page"))
    assert open_page(f"/requests/{filed.pk}", as_user=alice).evaluate("window.openStreams") == 0
