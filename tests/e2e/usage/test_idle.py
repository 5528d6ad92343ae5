"""Idle runs in a browser: kept by keyboard on the workload's page; found, and stopped with a reason, by an operator."""

from __future__ import annotations

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
from tests.usage.idle import rows
from tests.usage.idle.test_pages import measured
from usage.idle.models import IdleRun
from workloads.models import Run

pytestmark = pytest.mark.browser


@pytest.fixture
def idle_run(namespace_a: Namespace, a100: GpuClass, alice: User, bob: User) -> Run:
    """Alice's notebook, which stops in 8 minutes, and Bob's job, which he keeps."""
    now = timezone.now()
    found = running.workload(namespace_a, a100, by=alice)
    running.make_ready(found)
    rows.idle(found.runs.get(), stops_at=now + timedelta(minutes=8))
    job = running.workload(namespace_a, a100, name="train", kind="job", by=bob, units=4).runs.get()
    rows.allocated(job, now - timedelta(days=1))
    kept = {"kept_until": now + timedelta(hours=2), "kept_reason": "a demo at four", "kept_by": bob}
    rows.idle(job, since=now - timedelta(hours=20), memory_mib=0, **kept)
    hour = now.replace(minute=0, second=0, microsecond=0)
    for back in range(2, 20):
        measured(job, hour - timedelta(hours=back), seen=58)
    return found.runs.get()


def test_an_idle_run_is_kept_by_keyboard(idle_run: Run, alice: User, open_page: Callable[..., Page]) -> None:
    page = open_page("/teams/team-a/workloads/one", as_user=alice)
    part = page.get_by_role("region", name="GPUs are idle")
    expect(part.get_by_text("40.0 GiB of GPU memory held")).to_be_visible()
    look_at(page)
    part.get_by_label("Reason (shown to the team").focus()
    page.keyboard.type("an interactive session")
    page.keyboard.press("Enter")
    expect(part.get_by_text("by Alice: an interactive session")).to_be_visible()
    expect(part.get_by_text("It was kept once since its GPUs are idle.")).to_be_visible()
    assert IdleRun.objects.get(run=idle_run).kept_by == alice


def test_an_operator_finds_who_wastes_most_in_three_clicks(
    idle_run: Run, olga: User, open_page: Callable[..., Page]
) -> None:
    page = open_page("/", as_user=olga)
    page.get_by_role("link", name="Idle GPUs").click()
    now = page.get_by_role("region", name="Idle now")
    expect(now.get_by_text("by Bob: a demo at four")).to_be_visible()
    now.get_by_text("Message for Bob").click()
    expect(now.get_by_text("Hello Bob,")).to_be_visible()
    now.get_by_role("button", name="Copy message").first.click()
    now.get_by_text("Stop it: one of Team A").click()
    look_at(page)
    now.get_by_label("Reason (sent to its users)").last.fill("Others wait for it")
    now.get_by_role("button", name="Stop one").click()
    expect(page.get_by_text("one of team-a stops. Its users are notified of the reason.")).to_be_visible()
    assert Run.objects.get(pk=idle_run.pk).stop_message == "Stopped by an operator: Others wait for it."


def test_the_teams_page_lists_them(idle_run: Run, alice: User, open_page: Callable[..., Page]) -> None:
    page = open_page("/teams/team-a/members", as_user=alice)
    expect(page.get_by_role("region", name="Idle GPUs").get_by_text("a demo at four")).to_be_visible()
    look_at(page)
