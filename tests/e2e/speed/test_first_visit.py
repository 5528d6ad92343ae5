"""What a first visit costs: requests, bytes on the wire, and how much moves while the page is completed and changes."""

from __future__ import annotations

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from portal.core.hints import page_hint
from tests.e2e.conftest import signed_in
from tests.support.browser.busy_team import BusyTeam
from tests.support.browser.limits import BYTES, REQUESTS, SHIFT
from tests.support.browser.pages import PAGES
from tests.support.browser.visit import Visitor, moved, shift_of
from workloads.models import Run

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def test_first_visits_are_small_and_still(visitor: Visitor, busy: BusyTeam) -> None:
    cookies = {name: signed_in(getattr(busy, name)) for name in ("alice", "dana", "olga")}
    over = {}
    for name, (path, who) in PAGES.items():
        with visitor.first_visit(path, cookies[who]) as (page, traffic):
            found = (traffic.requests, traffic.total_bytes, shift_of(page))
            if any(one > most for one, most in zip(found, (REQUESTS, BYTES, SHIFT), strict=True)):
                over[name] = (found, moved(page), traffic.story())
    assert not over, "\n".join(f"{name}: {found} {what}\n{story}" for name, (found, what, story) in over.items())


def test_what_the_stream_changes_moves_little(visitor: Visitor, busy: BusyTeam) -> None:
    """A run that is being stopped, on the team's home; a run that ends, on its own page."""
    with visitor.first_visit("/teams/vision", signed_in(busy.alice)) as (page, _):
        before = shift_of(page)
        Run.objects.filter(workload__name="lab-1").update(stop_requested_at=timezone.now())
        page_hint(busy.namespace.name)
        expect(page.locator("#state_running")).to_contain_text("Stopping")
        assert shift_of(page) - before <= SHIFT, moved(page)
    with visitor.first_visit("/teams/vision/workloads/lab-0", signed_in(busy.alice)) as (page, _):
        before = shift_of(page)
        ended = {"message": "It was stopped.", "outcome": "stopped", "ended_at": timezone.now()}
        Run.objects.filter(workload__name="lab-0").update(**ended)
        page_hint(busy.namespace.name)
        expect(page.locator("#state_workload")).to_contain_text("It was stopped.")
        assert shift_of(page) - before <= SHIFT, moved(page)
