"""What is going to stop a run, on its page in both themes and widths; extended and kept by keyboard, and by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Namespace
from tests.e2e.accessibility import look_at
from tests.support.rows import running
from workloads.lifetime.idle import reconcile as idle_reconcile
from workloads.models import NotebookWatch, Run

pytestmark = pytest.mark.browser
PAGE = "/teams/team-a/workloads/one"


@pytest.fixture
def ending(namespace_a: Namespace, a100: GpuClass, alice: User) -> Run:
    """A notebook that ends in 20 minutes, and is idle."""
    GpuClass.objects.filter(pk=a100.pk).update(run_hours_limit=12, idle_stop_minutes=60)
    a100.refresh_from_db()
    found = running.workload(namespace_a, a100, by=alice, options={"run_hours": 8})
    running.make_ready(found)
    now = timezone.now()
    Run.objects.update(ends_at=now + timedelta(minutes=20))
    idle_reconcile.start_watch(found.runs.get())
    NotebookWatch.objects.update(
        asked_at=now,
        answered_at=now,
        last_activity=now - timedelta(minutes=52),
        evidence={"computing": 0, "idle": 2, "terminals": 1, "connections": 1},
        idle_since=now - timedelta(minutes=52),
        warned_at=now,
        stops_at=now + timedelta(minutes=8),
    )
    return found.runs.get()


def test_a_run_is_extended_and_kept_by_keyboard(ending: Run, alice: User, open_page: Callable[..., Page]) -> None:
    page = open_page(PAGE, as_user=alice)
    look_at(page)
    expect(page.get_by_text("It reaches its time limit at")).to_be_visible()
    expect(page.get_by_text("It is idle and is stopped at")).to_be_visible()
    part = page.get_by_role("region", name="Limits")
    expect(part.get_by_text("2 kernels idle; 1 terminal; 1 browser connection")).to_be_visible()
    part.get_by_label("Additional hours, 1 to 4").focus()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("3")
    page.keyboard.press("Enter")
    expect(part.get_by_text("11 h from its start, including 3 h added")).to_be_visible()
    part.get_by_label("Reason (shown to users waiting").focus()
    page.keyboard.type("a demo at four")
    page.keyboard.press("Enter")
    expect(part.get_by_text(re.compile("a demo at four"))).to_be_visible()
    expect(page.get_by_text("It is idle")).to_have_count(0)


def test_it_works_without_script(ending: Run, alice: User, open_page: Callable[..., Page]) -> None:
    page = open_page(PAGE, as_user=alice, java_script_enabled=False)
    page.get_by_label("Additional hours, 1 to 4").fill("4")
    page.get_by_role("button", name="Extend").click()
    expect(page.get_by_text("Save your work, and start it again afterwards.")).to_be_visible()
    page.get_by_label("Reason (shown to users waiting").fill("a demo at four")
    page.get_by_role("button", name="Keep running").click()
    expect(page.get_by_text("a demo at four")).to_be_visible()


def test_the_list_counts_down(ending: Run, alice: User, open_page: Callable[..., Page]) -> None:
    page = open_page("/teams/team-a/workloads", as_user=alice)
    expect(page.get_by_text(re.compile("idle, stops in [67] min"))).to_be_visible()
    look_at(page)
