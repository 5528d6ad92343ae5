"""Who may interrupt a run and how it was interrupted, in a browser: on its page, and before it is launched."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Namespace, Tenant
from tests.e2e.accessibility import look_at
from tests.support.rows import make, mirrored
from tests.support.rows.interruptions import asked, follow, holds, out

pytestmark = pytest.mark.browser


@pytest.fixture
def house(team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User) -> Tenant:
    """Two cards are granted; three are in use, and another job lost its four."""
    mirrored.hardware_seen(namespace_a.cluster)
    GpuClass.objects.update(borrowing_limit=4)
    make.grant(team_a, a100, units=2)
    run = asked(namespace_a, a100, alice, "lost", units=4)
    out(run, at=timezone.now() - timedelta(minutes=3))
    follow(run)
    first = asked(namespace_a, a100, alice, "borrows", units=3)
    holds(first, a100, 3)
    return team_a


def test_the_page_of_a_run_says_both(open_page: Callable[..., Page], house: Tenant, alice: User) -> None:
    page = open_page("/teams/team-a/workloads/borrows", as_user=alice)
    before = page.locator("#may-be-interrupted")
    expect(before).to_contain_text("1 of its 3 GPUs is borrowed")
    expect(before).to_contain_text("It restarts automatically from the beginning")
    look_at(page)
    page.goto(page.url.replace("borrows", "lost"))
    expect(page.locator("#interrupted")).to_contain_text("by Kueue's rule InCohortReclamation, for the 1st time.")
    expect(page.locator("#start-estimate")).to_be_visible()
    look_at(page)


def test_the_launch_form_says_it_first(open_page: Callable[..., Page], house: Tenant, alice: User) -> None:
    page = open_page("/teams/team-a/launch?kind=job&units=1", as_user=alice)
    effect = page.locator("#effect")
    expect(effect).to_contain_text("Interruptions: It would use a borrowed GPU")
    page.get_by_label("This job uses checkpointing").check()
    expect(effect).to_contain_text("continues from its last checkpoint")
    look_at(page)
