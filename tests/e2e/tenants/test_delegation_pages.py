"""Somebody decides for an approver, in a real browser: both themes, desk and phone, accessible, nothing cut off."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import QuotaRequest, Tenant
from tenants.requests import actions
from tenants.requests.types import RequestedLine
from tests.e2e.accessibility import look_at
from tests.support.http.pages import page as on_page

pytestmark = pytest.mark.browser


def test_named_seen_decided_ended(
    open_page: Callable[..., Page], team_a: Tenant, a100: GpuClass, alice: User, charlie: User, dana: User
) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8)
    now = timezone.now()
    asked = RequestedLine(a100.slug, 2, now, now + timedelta(days=30))
    filed = actions.file_request("team-a", lines=[asked], justification="Two trainings.", by=on_page(alice))
    QuotaRequest.objects.filter(pk=filed.pk).update(filed_at=now - timedelta(days=10))

    page = open_page("/inbox", as_user=dana)
    page.get_by_role("link", name="Delegate").click()
    page.get_by_label("Email address").fill(charlie.email)
    page.get_by_role("button", name="Name delegate").click()
    expect(page.get_by_text("Charlie is your delegate in this period")).to_be_visible()
    look_at(page)

    deputy = open_page(f"/requests/{filed.pk}", as_user=charlie)
    expect(deputy.get_by_text("as Charlie, delegate for Dana")).to_be_visible()
    expect(deputy.get_by_text("Pending, overdue")).to_be_visible()
    page.goto(page.url.replace("/delegations", f"/requests/{filed.pk}"))
    expect(page.get_by_text("Charlie has had this request open")).to_be_visible()
    look_at(page)
    deputy.get_by_role("button", name="Approve").click()
    expect(deputy.get_by_text("Decision saved. Alice is notified.")).to_be_visible()
    expect(deputy.get_by_text("Charlie, delegate for Dana")).to_be_visible()

    deputy.goto(deputy.url.split("/requests")[0] + "/delegations")
    deputy.get_by_role("link", name="End now… the delegation from Dana to Charlie").click()
    deputy.get_by_role("dialog").get_by_role("button", name="End now").click()
    expect(deputy.get_by_text("No delegations.")).to_be_visible()
