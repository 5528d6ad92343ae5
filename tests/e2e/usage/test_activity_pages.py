"""What GPUs did, in a browser: charts that are drawn from their tables, narrow and wide, light and dark."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from math import sin

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Namespace
from tests.e2e.accessibility import look_at
from tests.support.rows import running
from tests.usage.telemetry.rows import held_run, hour_row
from usage.samples.models import CapacityInterval
from usage.telemetry.class_hours import sum_up
from usage.telemetry.models import RunHour, TelemetrySource
from workloads.models import Run

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
# The share of painted pixels of the first canvas.
PAINTED = """plot => {
  const canvas = plot.querySelector("canvas");
  const bytes = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let painted = 0;
  for (let at = 3; at < bytes.length; at += 4) painted += bytes[at] > 0;
  return painted / (canvas.width * canvas.height);
}"""
FIRST_LINE = """plot => getComputedStyle(plot.querySelector(".u-series:nth-child(2) .u-marker")).borderTopColor"""


@pytest.fixture
def run(namespace_a: Namespace, a100: GpuClass, alice: User) -> Run:
    """Measured in all of 60 hours but five, and in the minute before this one."""
    minute = timezone.now().replace(second=0, microsecond=0)
    hour = minute.replace(minute=0)
    run = held_run(namespace_a, a100, alice, hour - 60 * HOUR, name="training")
    running.known(namespace_a.cluster_id)
    bits = {back: (1 << 60) - 1 for back in range(60) if not 20 <= back < 25}
    # Also if the minute before this one was in the hour before.
    bits[0 if minute.minute else 1] = 1 << (minute - MINUTE).minute
    RunHour.objects.bulk_create(
        hour_row(run, hour - back * HOUR, seen, 50 + 45 * sin(back / 5)) for back, seen in bits.items()
    )
    TelemetrySource.objects.create(cluster=namespace_a.cluster, read_until=minute)
    return run


def plots(page: Page) -> Locator:
    return page.locator("[data-time-chart] .plot:has(canvas)")


def test_charts_of_a_workload(open_page: Callable[..., Page], run: Run, alice: User) -> None:
    page = open_page("/teams/team-a/workloads/training", as_user=alice, theme="light")
    expect(page.get_by_text(re.compile(r"5\d %, 30\.0 of 80 GiB GPU memory, 310 W"))).to_be_visible()
    expect(plots(page)).to_have_count(2)
    assert 0.005 < plots(page).first.evaluate(PAINTED) < 0.9
    legend = plots(page).first.locator(".u-legend")
    expect(legend).not_to_contain_text("not measured")
    plots(page).first.locator(".u-over").hover(position={"x": 40, "y": 40})
    expect(legend).to_contain_text(re.compile(r"Mean\d+\.\d %"))
    # The table says the same to those who cannot see the chart.
    page.get_by_text("Activity as a table").click()
    table = page.get_by_role("region", name="Table of activity by the hour")
    expect(table.get_by_role("row")).to_have_count(1 + RunHour.objects.count())
    light = plots(page).first.evaluate(FIRST_LINE)
    page.evaluate("document.documentElement.dataset.bsTheme = 'dark'")
    expect(plots(page)).to_have_count(2)
    assert plots(page).first.evaluate(FIRST_LINE) != light
    look_at(page)
    page.set_viewport_size({"width": 390, "height": 900})
    page.wait_for_function("() => document.querySelector('[data-time-chart] canvas').clientWidth < 390")
    expect(plots(page)).to_have_count(2)


def test_hours_that_were_not_measured_are_a_gap(open_page: Callable[..., Page], run: Run, alice: User) -> None:
    """uPlot is given null for each of them, and not a line across."""
    page = open_page("about:blank", as_user=alice)
    page.add_init_script(
        "Object.defineProperty(window, 'uPlot', {set(made) { this.made = function (o, data, place) {"
        " (window.chartData ??= []).push(data); return new made(o, data, place); }; }, get() { return this.made; }})"
    )
    page.goto("/teams/team-a/workloads/training")
    expect(plots(page)).to_have_count(2)
    times, *columns = page.evaluate("chartData[0]")
    for column in columns:
        assert [place for place, value in enumerate(column) if value is None] == [len(times) - 21]
    assert len(times) == RunHour.objects.count() + 1


def test_days_of_a_team(open_page: Callable[..., Page], run: Run, alice: User) -> None:
    page = open_page("/teams/team-a", as_user=alice)
    heading = page.get_by_role("heading", name="Held and busy, 30 days")
    heading.scroll_into_view_if_needed()
    expect(page.get_by_text("measured unit-hours were busy")).to_be_visible()
    expect(plots(page)).to_have_count(1)
    look_at(page)


@pytest.mark.parametrize(
    ("path", "title", "minutes"),
    [
        ("/teams/team-a/workloads/training", "Activity as a table", 1),
        ("/teams/team-a", "{slug} as a table", 5),
        ("/catalog/{slug}", "Unit-hours as a table", 5),
    ],
)
def test_an_open_table_stays_open_when_its_card_is_fetched_again(
    open_page: Callable[..., Page], run: Run, alice: User, path: str, title: str, minutes: int
) -> None:
    """And who is at it with the keyboard stays there."""
    sum_up(run.workload.namespace.cluster_id, {row.hour for row in RunHour.objects.all()})
    slug = run.workload.gpu_class.slug
    page = open_page("about:blank", as_user=alice)
    page.clock.install()
    page.goto(path.format(slug=slug))
    # The card of a workload is fetched at once, with its heading; those of a team and a class when they are seen.
    if (heading := page.get_by_role("heading", name="Held and busy, 30 days")).count():
        heading.scroll_into_view_if_needed()
    summary = page.get_by_text(title.format(slug=slug), exact=True)
    summary.focus()
    page.keyboard.press("Enter")
    table = page.locator("details").filter(has=summary).locator("table")
    expect(table).to_be_visible()
    summary.evaluate("summary => { summary.wasHereBefore = true; }")
    with page.expect_response("**/activity"):
        page.clock.fast_forward(minutes * 60_000 + 1000)
    page.wait_for_function("() => !document.activeElement.wasHereBefore && document.activeElement.matches('summary')")
    expect(summary).to_be_focused()
    expect(table).to_be_visible()
    expect(plots(page).first).to_be_visible()
    page.keyboard.press("Enter")
    expect(table).to_be_hidden()
    with page.expect_response("**/activity"):
        page.clock.fast_forward(minutes * 60_000 + 1000)
    expect(table).to_be_hidden()


def test_days_of_a_class_and_of_the_cluster(open_page: Callable[..., Page], run: Run, alice: User, olga: User) -> None:
    now = timezone.now()
    CapacityInterval.objects.create(
        gpu_class=run.workload.gpu_class, units=8, starts_at=now - timedelta(days=3), ends_at=now
    )
    sum_up(run.workload.namespace.cluster_id, {row.hour for row in RunHour.objects.all()})
    slug = run.workload.gpu_class.slug
    page = open_page(f"/catalog/{slug}", as_user=alice)
    page.get_by_role("heading", name="Held and busy, 30 days").scroll_into_view_if_needed()
    expect(page.get_by_text("measured unit-hours were busy")).to_be_visible()
    expect(plots(page)).to_have_count(1)
    expect(plots(page).locator(".u-legend .u-label")).to_have_text(["Time", "Held", "Measured", "Busy", "Provided"])
    look_at(page)
    page = open_page("/cluster", as_user=olga)
    page.get_by_role("heading", name="Provided, held and busy, 30 days").scroll_into_view_if_needed()
    expect(page.get_by_text(re.compile(rf"{slug}: \d+ unit-hours held, \d+ provided"))).to_be_visible()
    expect(plots(page)).to_have_count(1)
    look_at(page)
