"""The inbox in a real browser: ticks redraw the curve, keys move, a set is decided row by row."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import QuotaLine, QuotaRequest
from tests.desk.inbox.test_inbox import limited
from tests.e2e.accessibility import look_at
from tests.support.rows import make
from tests.support.rows.inbox import in_use, team, waits

pytestmark = pytest.mark.browser
__all__ = ["limited"]


@pytest.fixture
def waiting(cluster: Cluster, limited: GpuClass, charlie: User) -> list[QuotaRequest]:
    """One click, and two that do not fit together."""
    holder = team(cluster, "vision-training")
    make.grant(holder, limited, units=2)
    in_use(holder.namespaces.get(), limited, charlie, units=2)
    return [
        waits(holder, limited, charlie, units=2, days=60),
        waits(team(cluster, "llm-inference"), limited, charlie, units=4, days=20),
        waits(team(cluster, "research-notebooks"), limited, charlie, units=3, days=40),
    ]


def tick(page: Page, request: QuotaRequest) -> None:
    page.get_by_role("checkbox", name=f"Select request {request.pk} of").check()


def test_ticks_redraw_the_curve_and_the_set_is_approved(
    open_page: Callable[..., Page], waiting: list[QuotaRequest], dana: User
) -> None:
    renewal, one, two = waiting
    page = open_page("/inbox", as_user=dana)
    expect(page.get_by_role("heading", name="Ready to approve 1")).to_be_visible()
    expect(page.get_by_role("heading", name="Conflict 2")).to_be_visible()
    look_at(page)
    tick(page, renewal)
    chart = page.get_by_role("img", name=re.compile("^At most"))
    expect(chart).to_have_accessible_name(re.compile("At most 2 GPUs allocated before, 2 after; allocation limit 8"))
    tick(page, one)
    expect(chart).to_have_accessible_name(re.compile("At most 2 GPUs allocated before, 6 after; allocation limit 8"))
    expect(page.locator("#set").get_by_text("Together they stay within all allocation limits")).to_be_visible()
    tick(page, two)
    expect(page.locator("#set").get_by_text("Together they exceed an allocation limit")).to_be_visible()
    page.get_by_role("checkbox", name=f"Select request {two.pk} of").uncheck()
    expect(page.locator("#set").get_by_text("Together they stay within all allocation limits")).to_be_visible()
    page.get_by_role("button", name="Approve selected").click()
    expect(page.get_by_text(f"#{renewal.pk}, #{one.pk} approved")).to_be_visible()
    states = dict(QuotaLine.objects.values_list("request_id", "state"))
    assert states == {renewal.pk: "approved", one.pk: "approved", two.pk: "pending"}


def test_a_refused_row_answers_for_itself_and_stays_ticked(
    open_page: Callable[..., Page], waiting: list[QuotaRequest], dana: User
) -> None:
    page = open_page(f"/inbox?request={waiting[1].pk}&request={waiting[2].pk}", as_user=dana)
    expect(page.locator("#set").get_by_text("Together they exceed an allocation limit")).to_be_visible()
    look_at(page)
    page.get_by_label("Comment to the requester").fill("For the paper.")
    page.get_by_role("button", name="Approve selected").click()
    expect(page.get_by_text(f"#{waiting[1].pk} approved")).to_be_visible()
    expect(page.get_by_text(f"#{waiting[2].pk} not approved: As requested, it exceeds")).to_be_visible()
    expect(page.get_by_role("checkbox", name=f"Select request {waiting[2].pk} of")).to_be_checked()
    expect(page.get_by_label("Comment to the requester")).to_have_value("For the paper.")


def test_keys_move_tick_and_open(open_page: Callable[..., Page], waiting: list[QuotaRequest], dana: User) -> None:
    page = open_page("/inbox", as_user=dana)
    page.keyboard.press("j")
    expect(page.get_by_role("link", name=f"#{waiting[0].pk}", exact=True)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_role("checkbox", name=f"Select request {waiting[1].pk} of")).to_be_checked()
    expect(page.get_by_role("heading", name="If the 1 selected is approved")).to_be_visible()
    page.keyboard.press("k")
    expect(page.get_by_role("link", name=f"#{waiting[0].pk}", exact=True)).to_be_focused()
    page.keyboard.press("a")
    expect(page.get_by_role("button", name="Approve selected")).to_be_focused()
    page.keyboard.press("d")
    expect(page.get_by_role("button", name="Deny selected")).to_be_focused()
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keys.get_by_text("select or deselect the request")).to_be_visible()
    page.keyboard.press("x")
    page.keyboard.press("Escape")
    # A letter that is typed is no key.
    page.get_by_label("Comment to the requester").press_sequentially("jaxd")
    expect(page.get_by_label("Comment to the requester")).to_have_value("jaxd")
    tick(page, waiting[2])
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/requests/{waiting[2].pk}")
    page.go_back()
    page.keyboard.press("j")
    page.keyboard.press("o")
    page.wait_for_url(f"**/requests/{waiting[0].pk}")


def test_it_works_without_script(open_page: Callable[..., Page], waiting: list[QuotaRequest], dana: User) -> None:
    page = open_page("/inbox?class=" + waiting[0].lines.get().gpu_class.slug, as_user=dana, java_script_enabled=False)
    tick(page, waiting[1])
    tick(page, waiting[2])
    page.get_by_label("Comment to the requester").fill("No room.")
    page.get_by_role("button", name="Show chart of the selection").click()
    expect(page.locator("#set").get_by_text("Together they exceed an allocation limit")).to_be_visible()
    assert "csrf" not in page.url
    assert "class=" in page.url
    expect(page.get_by_label("Comment to the requester")).to_have_value("No room.")
    page.get_by_role("button", name="Deny selected").click()
    expect(page.get_by_text(f"#{waiting[1].pk}, #{waiting[2].pk} denied")).to_be_visible()
    assert "class=" in page.url
