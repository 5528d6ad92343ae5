"""Maintenance in a real browser: from a planned MIG layout to a plan that says who is affected, and its controls."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from operations.models import Maintenance, MaintenanceNode
from tenants.models import Namespace
from tests.e2e.accessibility import look_at
from tests.support.rows import mirrored, running

pytestmark = pytest.mark.browser


def test_a_planned_layout_becomes_a_maintenance(
    cluster: Cluster, namespace_a: Namespace, a100: GpuClass, alice: User, olga: User, open_page: Callable[..., Page]
) -> None:
    mirrored.hardware_seen(cluster)
    running.make_ready(running.workload(namespace_a, a100, name="mine", by=alice))
    page = open_page("/nodes/a100-1/mig?1g.10gb=28", as_user=olga)
    page.get_by_role("link", name="plan maintenance with this layout").click()
    expect(page.get_by_label("Devices of each node afterwards")).to_have_value("nvidia.com/mig-1g.10gb=28")
    expect(page.get_by_role("link", name="mine")).to_be_visible()
    expect(page.get_by_text("It is moved off the node at")).to_be_visible()
    look_at(page)
    page.get_by_label("Reason").fill("More small slices")
    page.get_by_role("button", name="Plan and tell everybody affected").click()
    expect(page.get_by_role("heading", name="More small slices")).to_be_visible()
    look_at(page)
    row = Maintenance.objects.get()
    assert (row.mig_config, row.expected) == ("portal-4gpu_7x1g.10gb", {"nvidia.com/mig-1g.10gb": 28})

    MaintenanceNode.objects.update(
        step="waiting", problem="The MIG manager reports pending; the layout is not applied yet."
    )
    page.reload()
    expect(page.get_by_text("The MIG manager reports pending")).to_be_visible()
    expect(page.locator("[aria-current=step]")).to_have_text("waiting")
    look_at(page)
    page.get_by_role("button", name="Cancel the maintenance").click()
    expect(page.get_by_text("being canceled")).to_be_visible()
    page.get_by_role("link", name="Maintenance", exact=True).click()
    expect(page.get_by_role("link", name="More small slices")).to_be_visible()
    look_at(page)
