"""Every page in both themes, on a desk and on a phone: accessible, nothing blocked by the policy, nothing cut off."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.template.loader import get_template
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass, Image
from cluster.models import Certificate, Cluster
from tenants.models import Tenant
from tenants.requests import actions as tenants
from tenants.requests.types import RequestedLine
from tests.e2e.accessibility import OPEN_ALL, look_at
from tests.support.rows import make, mirrored
from workloads.launch import actions as workloads
from workloads.launch.types import LaunchSpec

pytestmark = pytest.mark.browser


@pytest.fixture
def house(team_a: Tenant, a100: GpuClass, alice: User) -> Tenant:
    """Team A with a grant, a notebook that waits, a request to decide; the hardware as the watcher saw it."""
    mirrored.hardware_seen(a100.cluster)
    shared = make.gpu_class(
        a100.cluster,
        slug=f"{a100.slug}-shared",
        name="A100 · time-sliced ×4",
        sharing="time-slicing",
        replicas=4,
        units_per_workload=1,
        resource="nvidia.com/gpu.shared",
        node_labels={"nvidia.com/gpu.sharing-strategy": "time-slicing"},
    )
    Image.objects.create(name="JupyterLab", reference="quay.io/jupyter/scipy-notebook:2025-11-10", kind="notebook")
    make.grant(team_a, a100, units=4)
    by = Actor(user=alice, via="page")
    workloads.launch(
        team_a.slug, LaunchSpec("retina-seg", "notebook", a100.slug, 1, "JupyterLab", volume="data"), by=by
    )
    now = timezone.now()
    asked = RequestedLine(gpu_class=shared.slug, units=99, starts=now, ends=now + timedelta(days=30))
    tenants.file_request(team_a.slug, lines=[asked], justification="A course of 12 students.", by=by)
    return team_a


def test_styleguide(open_page: Callable[..., Page], olga: User) -> None:
    look_at(open_page("/styleguide", as_user=olga))


@pytest.mark.parametrize("path", ["/api/", "/api/account"])
def test_the_api_for_people(open_page: Callable[..., Page], path: str) -> None:
    """Some of the tables, which are all of one template: axe takes minutes for all."""
    some = "document.querySelectorAll('.call').forEach((one, at) => { if (at % 12) one.remove(); })"
    look_at(open_page(path), prepare=f"{OPEN_ALL}; {some}")


def test_a_call_is_found_by_its_address_and_by_the_keyboard(open_page: Callable[..., Page]) -> None:
    """Also by that from when the reference was one page, which leads on."""
    page = open_page("/api/#workloads_launch")
    page.wait_for_url("**/api/workloads#workloads_launch")
    expect(page.get_by_role("heading", name="POST /api/v1/workloads", exact=True)).to_be_in_viewport()
    link = page.get_by_role("navigation", name="Sections").get_by_role("link", name="POST /workloads/{name}/stop")
    link.press("Enter")
    page.wait_for_url("**/api/workloads#workloads_stop")
    expect(page.get_by_role("heading", name="POST /api/v1/workloads/{name}/stop", exact=True)).to_be_in_viewport()


def test_help(open_page: Callable[..., Page]) -> None:
    look_at(open_page("/help"))


def test_the_search_is_reached_by_a_key(open_page: Callable[..., Page], house: Tenant, alice: User) -> None:
    page = open_page("/catalog", as_user=alice)
    page.keyboard.press("/")
    page.keyboard.type("retina")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=retina*")
    page.get_by_role("link", name="retina-seg").click()
    expect(page.get_by_role("heading", name=re.compile("^retina-seg"))).to_be_visible()


def test_the_help_menu_works_without_script(open_page: Callable[..., Page], house: Tenant, alice: User) -> None:
    page = open_page("/catalog", as_user=alice, java_script_enabled=False)
    page.locator("summary", has_text="Help").click()
    page.get_by_role("link", name="Command line").click()
    expect(page.get_by_role("heading", name="Command line")).to_be_in_viewport()


def test_a_notice_is_read_when_its_page_was_opened(open_page: Callable[..., Page], dana: User, house: Tenant) -> None:
    page = open_page("/catalog", as_user=dana)
    page.get_by_role("link", name="Notices 1 unread").click()
    look_at(page)
    page.get_by_role("link", name="requests quota").click()
    expect(page.get_by_role("heading", name=re.compile("^Allocation of"))).to_be_visible()
    expect(page.get_by_role("link", name="Notices", exact=True)).to_be_visible()


def test_parts_are_in_line(open_page: Callable[..., Page], house: Tenant, alice: User) -> None:
    """A part without content leaves no gap; the current entry of the navigation needs no second line on a phone."""
    page = open_page("/teams/team-a/workloads/retina-seg", as_user=alice)
    tops = "all => all.map((one) => Math.round(one.getBoundingClientRect().top))"
    progress, configuration = page.locator("main .cols > .stack").evaluate_all(
        "all => all.map((one) => one.querySelector('.card').getBoundingClientRect().top)"
    )
    assert progress == pytest.approx(configuration, abs=1)
    for path in ("/teams/team-a/requests", "/teams/team-a/members"):
        narrow = open_page(path, as_user=alice, width=390)
        assert len({*narrow.locator(".mainnav a").evaluate_all(tops)}) == 1, path


def test_the_bell_follows_the_stream_of_the_page(open_page: Callable[..., Page], house: Tenant, alice: User) -> None:
    page = open_page("/teams/team-a", as_user=alice)
    tell = "html => window.stream.dispatchEvent(new MessageEvent('state_notices', { data: html }))"
    three = get_template("components/page/_unread.html").render({"unread_notices": 3})
    page.evaluate(tell, "")
    expect(page.locator("#announce")).to_have_text("")
    page.evaluate(tell, three)
    expect(page.get_by_role("link", name="Notices 3 unread")).to_be_visible()
    expect(page.locator("#announce")).to_have_text("Notices: 3 unread.")
    page.evaluate(tell, "")
    expect(page.get_by_role("link", name="Notices", exact=True)).to_be_visible()
    assert page.evaluate("window.openStreams") == 1


@pytest.mark.parametrize("path", ["/login", "/login/password"])
def test_sign_in(open_page: Callable[..., Page], path: str) -> None:
    look_at(open_page(path))


def test_start_of_a_person_without_team(open_page: Callable[..., Page], charlie: User) -> None:
    look_at(open_page("/start", as_user=charlie))


@pytest.mark.parametrize(
    "path",
    [
        "/teams/team-a",
        "/catalog",
        "/catalog/choose?mem=10&iso=shared&how=several",
        "/catalog/choose?cards=nodes&units=16&resume=yes&video=encode",
        "/catalog/compare",
        "/teams/team-a/workloads",
        "/teams/team-a/workloads/retina-seg",
        "/teams/team-a/launch",
        "/teams/team-a/requests",
        "/teams/team-a/requests/new",
        "/teams/team-a/members",
        "/teams/team-a/secrets",
        "/teams/team-a/tokens",
        "/account",
        "/notices",
        "/search?q=team",
        "/account/second-factor",
        "/tokens",
    ],
)
def test_pages_of_a_member(open_page: Callable[..., Page], house: Tenant, alice: User, path: str) -> None:
    look_at(open_page(path, as_user=alice))


def test_the_catalog_of_a_person_without_team(open_page: Callable[..., Page], house: Tenant, charlie: User) -> None:
    look_at(open_page("/catalog", as_user=charlie))


def test_the_catalog_answers_at_once(open_page: Callable[..., Page], house: Tenant, alice: User) -> None:
    page = open_page("/catalog", as_user=alice)
    answer = page.get_by_role("region", name="Recommendation")
    expect(page.get_by_role("button", name="Update")).to_be_hidden()
    page.get_by_label("up to 80 GB").check()
    expect(answer).to_contain_text("your peak of 74.5 GiB (80 GB) fits, with 5.5 GiB to spare")
    page.get_by_label("more", exact=True).check()
    expect(answer.get_by_role("heading", name="No class fits")).to_be_visible()
    expect(page.get_by_text("Recommended")).to_have_count(0)
    expect(page.get_by_label("more", exact=True)).to_be_focused()
    page.wait_for_url("**/catalog?mem=more&iso=own&how=interactive")
    page.get_by_label("up to 80 GB").check()
    expect(page.get_by_text("Recommended")).to_have_count(1)
    answer.get_by_role("link", name="All reasons").click()
    expect(page.get_by_label("up to 80 GB")).to_be_checked()
    page.get_by_label("in GiB per GPU").fill("200")
    page.get_by_label("in GiB per GPU").press("Enter")
    expect(page.get_by_role("region", name="Recommendation")).to_contain_text("No class has 200 GiB on one GPU")


def test_the_catalog_answers_without_script(open_page: Callable[..., Page], house: Tenant, alice: User) -> None:
    page = open_page("/catalog?only=exclusive", as_user=alice, java_script_enabled=False)
    page.get_by_label("up to 80 GB").check()
    page.get_by_role("button", name="Update").click()
    expect(page.get_by_role("region", name="Recommendation")).to_contain_text("A100 80GB whole card, 1 GPU")
    expect(page.get_by_role("link", name=re.compile("^Exclusive"))).to_have_attribute("aria-current", "true")


def test_inbox_and_request_of_an_approver(open_page: Callable[..., Page], house: Tenant, dana: User) -> None:
    page = open_page("/inbox", as_user=dana)
    look_at(page)
    page.get_by_role("link", name=re.compile("^Review")).click()
    expect(page.get_by_role("heading", name=re.compile("^Allocation of"))).to_be_visible()
    look_at(page)


def test_accounts_for_administrators(open_page: Callable[..., Page], house: Tenant, olga: User, bob: User) -> None:
    page = open_page("/people", as_user=olga)
    look_at(page)
    page.get_by_role("link", name="New account").click()
    look_at(page)
    page.goto(page.url.replace("/new", f"/{bob.pk}"))
    look_at(page)
    page.get_by_role("button", name="Create password code").click()
    expect(page.get_by_role("heading", name="Code for Bob")).to_be_visible()
    look_at(page)


def test_health_for_operators(open_page: Callable[..., Page], house: Tenant, olga: User) -> None:
    look_at(open_page("/health", as_user=olga))


def test_keys_open_help_and_escape_closes_it(open_page: Callable[..., Page], olga: User) -> None:
    page = open_page("/styleguide", as_user=olga)
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_a_menu_closes_by_escape_and_gives_the_focus_back(open_page: Callable[..., Page], olga: User) -> None:
    page = open_page("/styleguide", as_user=olga)
    summary = page.locator("details.menu summary", has_text="Olga")
    summary.click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Sign out")).to_be_hidden()
    expect(summary).to_be_focused()


def test_destroying_waits_for_the_name(open_page: Callable[..., Page], olga: User) -> None:
    page = open_page("/styleguide", as_user=olga)
    page.get_by_role("link", name="Delete…").click()
    dialog = page.get_by_role("dialog", name="Delete retina-seg")
    button = dialog.get_by_role("button", name="Delete")
    expect(button).to_be_disabled()
    dialog.get_by_label("Type retina-seg to confirm").fill("retina-seg")
    expect(button).to_be_enabled()


def test_the_system_theme_is_there_before_the_first_paint(open_page: Callable[..., Page]) -> None:
    page = open_page("/login", color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 18, 24)"


def test_times_are_in_the_persons_zone(open_page: Callable[..., Page], olga: User) -> None:
    page = open_page("/styleguide", as_user=olga, timezone_id="Asia/Tokyo")
    expect(page.locator("time[data-when=clock]").first).to_have_attribute("title", re.compile(r"GMT\+9"))


def test_a_time_of_another_year_has_its_year(open_page: Callable[..., Page], olga: User, cluster: Cluster) -> None:
    """A CA that is valid for ten years would look as if it had expired."""
    now = timezone.now()
    ends_at = now + timedelta(days=3650)
    Certificate.objects.create(name=Certificate.Name.API_CA, begins_at=now, ends_at=ends_at)
    page = open_page("/health", as_user=olga, timezone_id="UTC")
    expect(page.locator("section[aria-labelledby=certificates] time")).to_have_text(f"{ends_at:%-d %b %Y, %H:%M}")


def test_pages_work_without_script(open_page: Callable[..., Page], olga: User) -> None:
    page = open_page("/styleguide", as_user=olga, java_script_enabled=False)
    page.get_by_role("link", name="Delete…").click()
    expect(page.get_by_role("dialog", name="Delete retina-seg")).to_be_visible()
    page.locator("details.menu summary", has_text="Olga").click()
    page.locator(".menu-list").get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")


def test_a_token_is_made_and_revoked_without_script(open_page: Callable[..., Page], alice: User) -> None:
    page = open_page("/tokens", as_user=alice, java_script_enabled=False)
    page.get_by_label("Name").fill("nightly CI")
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_role("heading", name="Your new token (shown only once)")).to_be_visible()
    page.get_by_role("link", name="Revoke… nightly CI").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("was revoked")).to_be_visible()


def test_a_page_holds_one_stream_and_none_while_nobody_looks(
    open_page: Callable[..., Page], house: Tenant, alice: User
) -> None:
    page = open_page("/teams/team-a", as_user=alice)
    assert page.evaluate("window.openStreams") == 1
    for hidden, streams in (("true", 0), ("false", 1)):
        page.evaluate(f"Object.defineProperty(document, 'hidden', {{ value: {hidden}, configurable: true }})")
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        assert page.evaluate("window.openStreams") == streams
