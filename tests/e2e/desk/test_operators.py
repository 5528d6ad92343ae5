"""The operators' start page and the list of teams in a browser: narrow and wide, light and dark."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Membership, Namespace, Tenant
from tests.e2e.accessibility import look_at
from tests.support.rows import make, mirrored, running

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_overview_leads_to_the_teams_of_a_state(
    open_page: Callable[..., Page], a100: GpuClass, namespace_a: Namespace, team_a: Tenant, alice: User, olga: User
) -> None:
    cluster = namespace_a.cluster
    mirrored.hardware_seen(cluster)
    slices = {"partition": "1g.10gb", "resource": "nvidia.com/mig-1g.10gb", "weight": "0.1429", "node_labels": {}}
    make.gpu_class(cluster, slug="a100-1g-10gb", name="A100 1g.10gb", **slices)
    make.grant(team_a, a100, units=4)
    running.workload(namespace_a, a100, by=alice)
    stuck = make.tenant(cluster, slug="stuck-team")
    make.member(stuck, alice, Membership.Role.OWNER)
    Namespace.objects.filter(tenant=stuck).update(error_code="refused", error_text="The quota was rejected.")
    page = open_page("/operators", as_user=olga)
    look_at(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_role("link", name="Stuck teams").click()
    expect(page).to_have_url("/operators/teams?state=stuck")
    expect(page.get_by_role("row", name="Stuck Team")).to_be_visible()
    expect(page.locator("main tbody tr")).to_have_count(1)
    look_at(page)
    page.get_by_role("link", name="Show all").click()
    expect(page.get_by_role("row", name="Team A")).to_contain_text("4 GPUs")


def test_the_overview_is_fetched_again_and_the_focus_stays(
    open_page: Callable[..., Page], namespace_a: Namespace, olga: User
) -> None:
    mirrored.hardware_seen(namespace_a.cluster)
    page = open_page("/operators", as_user=olga)
    page.clock.install()
    page.reload()
    mails = page.get_by_role("link", name="Undelivered mails")
    mails.focus()
    make.tenant(namespace_a.cluster, slug="new-team")
    page.clock.fast_forward(16_000)
    expect(page.get_by_role("region", name="Teams")).to_contain_text("2")
    expect(mails).to_be_focused()


def test_an_operator_looks_before_the_portal_writes(
    open_page: Callable[..., Page], cluster: Cluster, olga: User
) -> None:
    """The question opens first; then every page says it, until the operator lets the portal write."""
    pods = [mirrored.pod("train", node="a100-1", namespace="lab", **{"nvidia.com/gpu": 2})]
    mirrored.hardware_seen(cluster, Pod=pods)
    page = open_page("/health", as_user=olga)
    page.get_by_role("link", name="Observe only", exact=True).click()
    expect(page.get_by_role("heading", name="The portal writes to the cluster")).to_be_visible()
    button = page.get_by_role("button", name="Observe only")
    expect(button).not_to_be_visible()
    page.get_by_text("Observe only…").click()
    button.click()
    expect(page.get_by_role("heading", name="The portal only observes the cluster")).to_be_visible()
    expect(page.get_by_role("region", name="Devices used by others")).to_contain_text("2 nvidia.com/gpu")
    look_at(page)
    page.goto(page.url.replace("/cluster/observe-only", "/cluster"))
    banner = page.get_by_role("region", name="Observe only")
    expect(banner).to_contain_text("by Olga: the portal reads the cluster and writes nothing to it.")
    banner.get_by_role("link", name="let the portal write").click()
    page.get_by_text("Let the portal write…").click()
    page.get_by_role("button", name="Let the portal write").click()
    expect(page.get_by_role("heading", name="The portal writes to the cluster")).to_be_visible()
    expect(page.get_by_role("region", name="Observe only")).to_have_count(0)
