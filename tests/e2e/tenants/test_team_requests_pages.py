"""How a team begins, in a real browser: in both themes, on a desk and on a phone, accessible, nothing cut off."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass
from tenants.core import queries as core_queries
from tenants.grants import queries
from tenants.models import Tenant
from tenants.onboarding.bundles import actions as bundle_actions
from tests.e2e.accessibility import look_at
from tests.support.http.pages import page as on_page
from tests.support.rows import make

pytestmark = pytest.mark.browser


def test_from_the_card_to_the_team(
    open_page: Callable[..., Page], team_a: Tenant, a100: GpuClass, charlie: User, dana: User, olga: User, unique: str
) -> None:
    slices = make.gpu_class(
        a100.cluster, slug=f"mig-{unique}", name="A100 1g.10gb slice", partition="1g.10gb", promise_limit=14
    )
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=1)
    bundle_actions.put_bundle(name="Research", lines=[(slices.slug, 2)], by=on_page(olga))
    bundle_actions.put_bundle(name="Training", lines=[(a100.slug, 2), (slices.slug, 1)], position=200, by=on_page(olga))
    start = open_page("/start", as_user=charlie)
    look_at(start)
    start.get_by_label("Name", exact=True).fill("Robots")
    start.get_by_label("Short name").fill(f"robots-{unique}")
    start.get_by_label("Purpose").fill("Grasping from video.")
    start.get_by_label("Training: 2 GPUs of A100 80GB whole card").check()
    start.get_by_role("button", name="Request team").click()
    expect(start.get_by_text("Approvers are notified by email")).to_be_visible()
    look_at(start)

    inbox = open_page("/inbox", as_user=dana)
    look_at(inbox)
    inbox.get_by_role("link", name="Robots", exact=True).click()
    expect(inbox.get_by_role("heading", name="New team: Robots")).to_be_visible()
    look_at(inbox)
    inbox.get_by_role("button", name="Create team").click()
    expect(inbox.get_by_text("Select 'Overcommit anyway'")).to_be_visible()
    inbox.get_by_label("Overcommit anyway").check()
    inbox.get_by_label("Comment to Charlie").fill("A node comes on Monday.")
    inbox.get_by_role("button", name="Create team").click()
    expect(inbox.get_by_text("Decision saved. Charlie is notified.")).to_be_visible()
    look_at(inbox)
    team = Tenant.objects.get(slug=f"robots-{unique}")
    assert queries.units_in_force(team.pk, core_queries.database_now()) == {a100.pk: 2, slices.pk: 1}
