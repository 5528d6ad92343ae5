"""The request form in a browser: a short page for one class, others added one by one, and live what fits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import QuotaRequest, Tenant
from tests.e2e.accessibility import look_at
from tests.support.rows import make

pytestmark = pytest.mark.browser
NEW = "/teams/team-a/requests/new"


@pytest.fixture
def classes(a100: GpuClass, team_a: Tenant) -> GpuClass:
    """Of 25 classes, this one has a limit of 8."""
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8, price_per_unit_hour="2.5")
    for number in range(24):
        make.gpu_class(a100.cluster, slug=f"more-{number}", name=f"More {number}", resource=f"example.com/{number}")
    make.grant(team_a, a100, units=1)
    return a100


@pytest.mark.parametrize(("width", "most"), [(1280, 1300), (390, 2200)])
def test_the_page_for_one_class_is_short(
    open_page: Callable[..., Page], classes: GpuClass, alice: User, width: int, most: int
) -> None:
    page = open_page(f"{NEW}?class={classes.slug}&units=100", as_user=alice, width=width)
    expect(page.get_by_text("this exceeds the allocation limit of 8 by 92")).to_be_visible()
    controls = page.locator("main form").locator("input:visible, select:visible, textarea:visible")
    assert controls.count() <= 12
    height = page.evaluate("document.documentElement.scrollHeight")
    assert height <= most, height
    if width < 1000:
        look_at(page)


def test_from_a_choice_to_a_request_of_two_classes(
    open_page: Callable[..., Page], classes: GpuClass, alice: User
) -> None:
    page = open_page(NEW, as_user=alice)
    page.locator("[name=class]").select_option(classes.slug)
    page.get_by_role("button", name="Continue").click()
    units = page.locator(f"#units-{classes.slug}")
    fit = page.locator(f"#fit-{classes.slug}")
    expect(fit).to_have_text("Enter units to see whether they fit.")
    units.fill("100")
    expect(fit).to_contain_text("100 GPUs requested: this exceeds the allocation limit of 8")
    expect(units).to_be_focused()
    units.fill("4")
    expect(fit).to_contain_text("1 → 4 GPUs")
    expect(fit.get_by_text("exceeds")).to_be_hidden()
    page.locator("[name=justification]").fill("Two trainings.")
    page.get_by_label("Another class").select_option("more-7")
    page.get_by_role("button", name="Add another class").click()
    page.locator("#units-more-7").fill("2")
    expect(page.locator("#fit-more-7")).to_contain_text("0 → 2")
    page.get_by_label("Another class").select_option("more-9")
    page.get_by_role("button", name="Add another class").click()
    page.get_by_role("button", name="Remove More 9").click()
    expect(page.locator("#units-more-9")).to_have_count(0)
    expect(units).to_have_value("4")
    units.press("Enter")
    page.wait_for_url("**/requests/*")
    lines = QuotaRequest.objects.get().lines.order_by("asked_units")
    assert [(line.gpu_class.slug, line.asked_units) for line in lines] == [("more-7", 2), (classes.slug, 4)]


def test_what_is_typed_before_the_scripts_run(open_page: Callable[..., Page], classes: GpuClass, alice: User) -> None:
    page = open_page(NEW, as_user=alice)
    held: list[Route] = []
    page.route("**/portal*.js", lambda route: held.append(route))
    page.goto(f"{page.url}?class={classes.slug}", wait_until="commit")
    page.locator(f"#units-{classes.slug}").fill("100")
    page.wait_for_function("() => document.readyState === 'interactive'")
    for route in held:
        route.continue_()
    expect(page.locator(f"#fit-{classes.slug}")).to_contain_text("this exceeds the allocation limit of 8")


def test_what_is_typed_before_a_new_part_works(open_page: Callable[..., Page], classes: GpuClass, alice: User) -> None:
    page = open_page(f"{NEW}?class={classes.slug}", as_user=alice)
    page.evaluate(
        """() => document.addEventListener("htmx:afterSwap", () => {
            const field = document.getElementById("units-more-7");
            field.value = "2";
            field.dispatchEvent(new Event("input", { bubbles: true }));
        }, { once: true })"""
    )
    page.get_by_label("Another class").select_option("more-7")
    page.get_by_role("button", name="Add another class").click()
    expect(page.locator("#fit-more-7")).to_contain_text("0 → 2")


def test_without_script(open_page: Callable[..., Page], classes: GpuClass, alice: User) -> None:
    page = open_page(f"{NEW}?class={classes.slug}", as_user=alice, java_script_enabled=False)
    page.locator(f"#units-{classes.slug}").fill("100")
    page.get_by_role("button", name="Check what fits").click()
    expect(page.get_by_text("this exceeds the allocation limit of 8")).to_be_visible()
    page.get_by_label("Another class").select_option("more-7")
    page.get_by_role("button", name="Add another class").click()
    page.get_by_role("button", name=f"Remove {classes.name}").click()
    page.locator("#units-more-7").fill("2")
    page.locator("[name=justification]").fill("Two trainings.")
    page.get_by_role("button", name="Submit request").click()
    page.wait_for_url("**/requests/*")
    assert QuotaRequest.objects.get().lines.get().gpu_class.slug == "more-7"
