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
    page.get_by_role("checkbox", name=f"Tick request {request.pk} of").check()


def test_ticks_redraw_the_curve_and_the_set_is_approved(
    open_page: Callable[..., Page], waiting: list[QuotaRequest], dana: User
) -> None:
    renewal, one, two = waiting
    page = open_page("/inbox", as_user=dana)
    expect(page.get_by_role("heading", name="One click 1")).to_be_visible()
    expect(page.get_by_role("heading", name="Conflict 2")).to_be_visible()
    look_at(page)
    tick(page, renewal)
    chart = page.get_by_role("img", name=re.compile("^At most"))
    expect(chart).to_have_accessible_name(re.compile("At most 2 GPUs promised before, 2 after, of a limit of 8"))
    tick(page, one)
    expect(chart).to_have_accessible_name(re.compile("At most 2 GPUs promised before, 6 after, of a limit of 8"))
    expect(page.locator("#set").get_by_text("Together they take no class over its limit")).to_be_visible()
    tick(page, two)
    expect(page.locator("#set").get_by_text("Together they go over a limit")).to_be_visible()
    page.get_by_role("checkbox", name=f"Tick request {two.pk} of").uncheck()
    expect(page.locator("#set").get_by_text("Together they take no class over its limit")).to_be_visible()
    page.get_by_role("button", name="Approve the ticked as asked").click()
    expect(page.get_by_text(f"#{renewal.pk}, #{one.pk} approved")).to_be_visible()
    states = dict(QuotaLine.objects.values_list("request_id", "state"))
    assert states == {renewal.pk: "approved", one.pk: "approved", two.pk: "pending"}


def test_a_refused_row_answers_for_itself_and_stays_ticked(
    open_page: Callable[..., Page], waiting: list[QuotaRequest], dana: User
) -> None:
    page = open_page(f"/inbox?request={waiting[1].pk}&request={waiting[2].pk}", as_user=dana)
    expect(page.locator("#set").get_by_text("Together they go over a limit")).to_be_visible()
    look_at(page)
    page.get_by_label("Comment to who asked").fill("For the paper.")
    page.get_by_role("button", name="Approve the ticked as asked").click()
    expect(page.get_by_text(f"#{waiting[1].pk} approved")).to_be_visible()
    expect(page.get_by_text(f"#{waiting[2].pk} not: As asked it would promise more")).to_be_visible()
    expect(page.get_by_role("checkbox", name=f"Tick request {waiting[2].pk} of")).to_be_checked()
    expect(page.get_by_label("Comment to who asked")).to_have_value("For the paper.")


def test_keys_move_tick_and_open(open_page: Callable[..., Page], waiting: list[QuotaRequest], dana: User) -> None:
    page = open_page("/inbox", as_user=dana)
    page.keyboard.press("j")
    expect(page.get_by_role("link", name=f"#{waiting[0].pk}", exact=True)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_role("checkbox", name=f"Tick request {waiting[1].pk} of")).to_be_checked()
    expect(page.get_by_role("heading", name="If the 1 ticked is approved")).to_be_visible()
    page.keyboard.press("k")
    expect(page.get_by_role("link", name=f"#{waiting[0].pk}", exact=True)).to_be_focused()
    page.keyboard.press("a")
    expect(page.get_by_role("button", name="Approve the ticked as asked")).to_be_focused()
    page.keyboard.press("d")
    expect(page.get_by_role("button", name="Deny the ticked")).to_be_focused()
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keyboard")
    expect(keys.get_by_text("tick or untick the request")).to_be_visible()
    page.keyboard.press("x")
    page.keyboard.press("Escape")
    # A letter that is typed is no key.
    page.get_by_label("Comment to who asked").press_sequentially("jaxd")
    expect(page.get_by_label("Comment to who asked")).to_have_value("jaxd")
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
    page.get_by_label("Comment to who asked").fill("No room.")
    page.get_by_role("button", name="Show the curve of the ticked set").click()
    expect(page.locator("#set").get_by_text("Together they go over a limit")).to_be_visible()
    assert "csrf" not in page.url
    assert "class=" in page.url
    expect(page.get_by_label("Comment to who asked")).to_have_value("No room.")
    page.get_by_role("button", name="Deny the ticked").click()
    expect(page.get_by_text(f"#{waiting[1].pk}, #{waiting[2].pk} denied")).to_be_visible()
    assert "class=" in page.url
