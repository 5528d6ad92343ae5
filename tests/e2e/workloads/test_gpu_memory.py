"""The memory of devices on the launch page: its field comes and goes with the class, and changes what starts now."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass, Image
from tenants.models import Tenant
from tests.catalog.classes.capacity.test_device_memory import claim, devices, seen, sized
from tests.e2e.accessibility import look_at
from tests.support.rows import make

pytestmark = pytest.mark.browser
# A fixture of another module, by name.
__all__ = ["sized"]
LABEL = "GPU memory at least (GiB)"


def test_its_field_comes_with_the_class_and_counts_devices(
    open_page: Callable[..., Page], sized: GpuClass, a100: GpuClass, team_a: Tenant, images: list[Image], alice: User
) -> None:
    GpuClass.objects.filter(pk=sized.pk).update(name="Two sizes")
    for one in (sized, a100):
        make.grant(team_a, one, units=2)
    seen(sized.cluster, devices("n1", 20, 40), claims=[claim("a", ("n1", 1))])
    page = open_page(f"/teams/team-a/launch?class={a100.slug}&kind=job", as_user=alice)
    expect(page.get_by_label(LABEL)).to_have_count(0)
    page.get_by_label("Two sizes").check()
    expect(page.get_by_text("Devices of Two sizes have 20 and 40 GiB.")).to_be_visible()
    page.get_by_label(LABEL).fill("30")
    page.get_by_label(LABEL).blur()
    expect(page.get_by_text("no node has a GPU with at least 30 GiB free now").first).to_be_visible()
    expect(page.get_by_label(LABEL)).to_have_value("30")
    look_at(page)
    page.get_by_label(LABEL).fill("80")
    page.get_by_label("Name").fill("train")
    page.get_by_role("button", name="Launch").click()
    expect(page.get_by_text("80 GiB requested; the largest device of Two sizes has 40 GiB.").first).to_be_visible()
