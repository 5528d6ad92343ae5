"""A team's home in a browser, with everything on it: accessible in both themes, on a desk and on a phone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass, Image
from desk.home.fragments import fragments
from tenants.models import Membership, Namespace, Tenant
from tests.e2e.accessibility import look_at
from tests.support.rows import make, mirrored, running
from tests.support.rows.homes import block, ready, stranger
from workloads.models import NotebookWatch, Run

pytestmark = pytest.mark.browser


@pytest.fixture
def morning(team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, bob: User) -> Tenant:
    """Four cards in use, one of them blocked and one idle; three notebooks wait; shares are borrowed, slices lent."""
    cluster = namespace_a.cluster
    mirrored.hardware_seen(cluster)
    Image.objects.create(name="JupyterLab", reference="quay.io/jupyter/scipy-notebook:2025-11-10", kind="notebook")
    GpuClass.objects.update(price_per_unit_hour="2.4")
    a100.refresh_from_db()
    shares: dict[str, Any] = {
        "sharing": "time-slicing",
        "replicas": 4,
        "units_per_workload": 1,
        "resource": "nvidia.com/gpu.shared",
    }
    shared = make.gpu_class(
        cluster, slug=f"{a100.slug}-shared", name="A100 time-sliced (shared)", weight="0.25", **shares
    )
    slices: dict[str, Any] = {"partition": "1g.10gb", "resource": "nvidia.com/mig-1g.10gb", "weight": "0.1429"}
    mig = make.gpu_class(cluster, slug=f"{a100.slug}-mig", name="A100 MIG 1g.10gb", **slices)
    make.grant(team_a, a100, units=4, until=timezone.now() + timedelta(days=43))
    make.grant(team_a, shared, units=1, until=timezone.now() + timedelta(days=12))
    make.grant(team_a, mig, units=6)
    for number, (name, who) in enumerate(
        [("cell-tracking", alice), ("retina-seg", alice), ("speech-align", bob), ("tokenizer-study", bob)]
    ):
        run = ready(namespace_a, a100, name, who, minutes_ago=200 - number * 20)
        Run.objects.filter(pk=run.pk).update(ends_at=timezone.now() + timedelta(hours=3 + number))
    block("retina-seg")
    since = timezone.now() - timedelta(minutes=102)
    stops_at = since + timedelta(hours=2)
    NotebookWatch.objects.create(run=run, idle_since=since, warned_at=since, stops_at=stops_at, due_at=None)
    for name in ("seg-ablation", "lora-check"):
        running.workload(namespace_a, a100, name=name, by=alice)
    ready(namespace_a, mig, "eval-suite", alice, minutes_ago=60, kind="job", units=2)
    ready(namespace_a, shared, "mask-review", alice, minutes_ago=40)
    ready(namespace_a, shared, "label-tool", bob, minutes_ago=80)
    other = make.tenant(cluster, slug="team-b").namespaces.get()
    ready(other, mig, "theirs", bob, units=2)
    stranger(namespace_a, "debug-by-hand")
    return team_a


def test_home(open_page: Callable[..., Page], morning: Tenant, alice: User) -> None:
    page = open_page("/teams/team-a", as_user=alice)
    runs = page.locator("#state_running")
    expect(runs.get_by_role("button", name="Open cell-tracking")).to_be_visible()
    expect(runs.get_by_role("link", name="Fix image of retina-seg")).to_be_visible()
    expect(runs.get_by_text("2 shares in use, 1 borrowed")).to_be_visible()
    expect(runs.get_by_text("debug-by-hand")).to_be_visible()
    expect(page.locator("#state_holdings").get_by_text("up to 2", exact=True)).to_be_visible()
    expect(page.locator("#state_attention").get_by_role("link", name="tokenizer-study")).to_be_visible()
    look_at(page)


BOXES = """() => Object.fromEntries([...document.querySelectorAll("[sse-swap] > .card")].map((card) => {
  const box = card.getBoundingClientRect();
  return [card.id, [box.top + scrollY, box.bottom + scrollY]];
}))"""
# Relative luminance and contrast as WCAG 2 defines them.
TRACK_CONTRAST = """() => {
  const light = (color) => {
    const part = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    const [red, green, blue] = color.match(/[0-9.]+/g).map(Number);
    return 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue);
  };
  const track = light(getComputedStyle(document.querySelector(".b-track")).stroke);
  const ground = light(getComputedStyle(document.querySelector("#state_holdings")).backgroundColor);
  return (Math.max(track, ground) + 0.05) / (Math.min(track, ground) + 0.05);
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_runs_is_seen_without_scrolling_and_cards_of_a_row_end_together(
    open_page: Callable[..., Page], morning: Tenant, alice: User, theme: str
) -> None:
    page = open_page("/teams/team-a", as_user=alice, theme=theme)
    boxes = page.evaluate(BOXES)
    assert boxes["state_running"][0] < 900
    assert boxes["state_holdings"] == pytest.approx(boxes["state_ends"], abs=1)
    assert boxes["state_events"] == pytest.approx(boxes["state_month"], abs=1)
    assert page.evaluate(TRACK_CONTRAST) >= 3, "unused quota"


def test_on_a_phone_no_tab_is_cut_off(open_page: Callable[..., Page], morning: Tenant, alice: User) -> None:
    page = open_page("/teams/team-a", as_user=alice, width=390)
    nav = page.locator(".mainnav")
    assert nav.evaluate("(nav) => nav.scrollWidth <= nav.clientWidth")
    for tab in nav.get_by_role("link").all():
        box = tab.bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


def test_who_only_looks_on_is_offered_no_step(open_page: Callable[..., Page], morning: Tenant, alice: User) -> None:
    Membership.objects.filter(user=alice).update(role="viewer")
    page = open_page("/teams/team-a", as_user=alice)
    runs = page.locator("#state_running")
    expect(runs.get_by_role("link", name="Log of eval-suite")).to_be_visible()
    expect(runs.locator(".verb-open")).to_have_count(5)
    expect(runs.locator(".verb-open:visible")).to_have_count(0)
    expect(runs.locator(".verb-fix:visible")).to_have_count(0)


def test_what_the_stream_sends_takes_its_place(
    open_page: Callable[..., Page], morning: Tenant, namespace_a: Namespace, alice: User
) -> None:
    """No reload: each fragment is swapped into its own part."""
    page = open_page("/teams/team-a", as_user=alice)
    page.evaluate("window.sameDocument = true")
    Run.objects.filter(workload__name="lora-check").update(ended_at=timezone.now(), outcome="stopped")
    found = {name: text for _view, part in fragments(namespace_a.name, [""]) for name, text in (part or {}).items()}
    for name, html in found.items():
        page.evaluate(
            "([name, html]) => { const part = document.querySelector(`[sse-swap=${name}]`); "
            "htmx.swap(part, html, {swapStyle: 'innerHTML'}); }",
            [name, html.decode()],
        )
    expect(page.locator("#state_waiting").get_by_text("lora-check")).to_have_count(0)
    expect(page.locator("#state_waiting").get_by_text("seg-ablation")).to_be_visible()
    assert page.evaluate("window.sameDocument") is True
