"""The launch page in a browser: what depends on a choice changes with it; by form, link, keyboard, without script."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass, Image
from cluster.models import Cluster
from tenants.models import Tenant, TermsAccepted
from tests.e2e.accessibility import look_at
from tests.support.rows import make, mirrored
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Workload

pytestmark = pytest.mark.browser
WORDS = "CUDA images do not run on AMD GPUs; MI300X needs a ROCm image."


@pytest.fixture
def shop(team_a: Tenant, a100: GpuClass) -> Tenant:
    """Two classes, one of them with terms and for jobs only; images of two vendors, one of them old."""
    mirrored.hardware_seen(a100.cluster)
    mi300x = make.gpu_class(
        a100.cluster,
        slug="mi300x",
        name="MI300X",
        vendor="amd",
        resource="amd.com/gpu",
        node_labels={"amd.com/gpu.device-id": "74a1"},
        kinds="job",
        terms_version=2,
        terms="Results are published.\n\nNo personal data.",
    )
    for one in (a100, mi300x):
        make.grant(team_a, one, units=2)
    plain = Image.objects.create(name="Python", reference="docker.io/library/python:3.14-slim", kind="job")
    Image.objects.create(
        name="PyTorch",
        version="2.9.1",
        reference="docker.io/pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime",
        contents="Python, PyTorch",
        vendor="nvidia",
        min_cuda="12.0",
        kind="job",
        position=1,
    )
    old = {"deprecated_since": date(2026, 1, 31), "successor": plain}
    Image.objects.create(name="Python 3.9", reference="docker.io/library/python:3.9-slim", kind="job", **old)
    return team_a


def test_what_depends_on_the_class_changes_with_it(open_page: Callable[..., Page], shop: Tenant, alice: User) -> None:
    page = open_page("/teams/team-a/launch", as_user=alice)
    expect(page.get_by_label("MI300X")).to_have_count(0)
    page.get_by_label("Name").fill("train")
    page.get_by_label("Job", exact=True).check()
    page.get_by_label("MI300X").check()
    expect(page.get_by_text(WORDS)).to_be_visible()
    expect(page.locator("option[value=PyTorch]")).to_be_disabled()

    page.get_by_role("button", name="Launch").click()
    expect(page.get_by_text("You have not accepted the terms")).to_be_visible()
    expect(page.get_by_text("No personal data.")).to_be_visible()
    page.get_by_label("I accept the terms of MI300X, version 2").check()
    page.get_by_role("button", name="Launch").click()
    page.wait_for_url("**/workloads/train")
    assert TermsAccepted.objects.get().version == 2


def test_it_works_without_script(open_page: Callable[..., Page], shop: Tenant, alice: User) -> None:
    page = open_page("/teams/team-a/launch", as_user=alice, java_script_enabled=False)
    page.get_by_label("Name").fill("train")
    page.get_by_label("Job", exact=True).check()
    fits = page.get_by_role("button", name="Update options")
    fits.click()
    page.get_by_label("MI300X").check()
    fits.click()
    expect(page.get_by_text(WORDS)).to_be_visible()
    page.get_by_label("I accept the terms of MI300X, version 2").check()
    page.get_by_role("button", name="Launch").click()
    page.wait_for_url("**/workloads/train")
    assert Workload.objects.get().image == "docker.io/library/python:3.14-slim"


def test_it_is_accessible_and_fits(open_page: Callable[..., Page], shop: Tenant, alice: User) -> None:
    look_at(open_page("/teams/team-a/launch?gpu_class=mi300x", as_user=alice))


def test_figures_plan_and_call_follow_the_choices(open_page: Callable[..., Page], shop: Tenant, alice: User) -> None:
    page = open_page("/teams/team-a/launch?kind=job", as_user=alice)
    card = page.locator(".choice-card", has_text="A100 80GB whole card")
    expect(card).to_contain_text("Uses 1 of 2 GPUs; 4 free now on one node; starts now")
    page.get_by_label("Units").fill("2")
    expect(card).to_contain_text("Uses 2 of 2 GPUs; 4 free now on one node; starts now")
    expect(card).to_contain_text("2 GPU-hours per hour")
    expect(page.get_by_label("Units")).to_be_focused()
    page.get_by_label("Units").fill("3")
    expect(card).to_contain_text("Not possible: 3 of A100 80GB whole card requested; your team can use at most 2")
    expect(page.locator("#effect")).to_contain_text("Not possible:")
    page.get_by_label("Units").fill("2")
    page.get_by_label("Name").fill("train")
    page.get_by_text("More: CPU").click()
    page.get_by_label("Variables").fill("MODE=fast")
    page.get_by_label("Cores").fill("3")
    page.get_by_text("API equivalent").click()
    expect(page.locator("#call")).to_contain_text('"cpu": 3')
    expect(page.locator("#call")).to_contain_text('"MODE": "fast"')
    page.get_by_text("Objects created", exact=True).click()
    page.get_by_text("Job as YAML").click()
    expect(page.locator("#made")).to_contain_text("name: train-1")


def test_by_keyboard_alone(open_page: Callable[..., Page], shop: Tenant, alice: User) -> None:
    page = open_page("/teams/team-a/launch", as_user=alice)
    keys = page.keyboard

    def tab_to(control: Locator) -> None:
        for _ in range(60):
            if control.evaluate("one => one === document.activeElement"):
                return
            keys.press("Tab")
        expect(control).to_be_focused()

    tab_to(page.get_by_label("Notebook", exact=True))
    keys.press("ArrowRight")
    expect(page.get_by_label("MI300X")).to_be_visible()
    tab_to(page.get_by_label("Units"))
    keys.press("Control+a")
    keys.type("2")
    expect(page.locator(".choice-card").first).to_contain_text("Uses 2 of 2")
    tab_to(page.get_by_label("A100 80GB whole card"))
    tab_to(page.get_by_label("Name"))
    keys.press("Control+a")
    keys.type("typed")
    tab_to(page.locator("summary", has_text="More: CPU"))
    keys.press("Enter")
    tab_to(page.get_by_label("Variables"))
    keys.type("A=1")
    tab_to(page.get_by_role("button", name="Launch"))
    keys.press("Enter")
    page.wait_for_url("**/workloads/typed")
    spec = Run.objects.get().spec
    assert (spec["units"], spec["env"]) == (2, [["A", "1"]])


@pytest.mark.parametrize("script", [True, False])
def test_a_link_fills_in_the_form_and_one_button_launches(
    script: bool, open_page: Callable[..., Page], shop: Tenant, a100: GpuClass, alice: User
) -> None:
    address = f"/launch?class={a100.slug}&image=Python&units=2&repo=https://github.com/owner/project&ref=main"
    page = open_page(address, as_user=alice, java_script_enabled=script)
    said = page.get_by_text("Filled in from a link. Nothing has started.")
    expect(said).to_be_visible()
    expect(page.locator(".note").first).to_contain_text("https://github.com/owner/project at main")
    assert not Workload.objects.exists()
    page.get_by_role("button", name="Launch this").click()
    page.wait_for_url("**/workloads/job")
    spec = Run.objects.get().spec
    assert (spec["repository"], spec["reference"], spec["units"]) == ("https://github.com/owner/project", "main", 2)


def test_a_change_says_what_is_lost(open_page: Callable[..., Page], shop: Tenant, a100: GpuClass, alice: User) -> None:
    by = Actor(alice, via="page")
    actions.launch("team-a", LaunchSpec("train", "job", a100.slug, 1, "Python", volume="data"), by=by)
    Run.objects.update(started_at=timezone.now())
    page = open_page("/teams/team-a/workloads/train", as_user=alice)
    page.get_by_role("link", name="Restart or change…").click()
    page.wait_for_url("**/change")
    expect(page.get_by_text("Restarting stops the current run.")).to_be_visible()
    page.get_by_label("Units").fill("2")
    expect(page.locator("#effect")).to_contain_text("Uses 2 of 2")  # its own unit comes back before
    page.get_by_role("button", name="Save and restart").click()
    page.wait_for_url("**/workloads/train")
    expect(page.get_by_text("train was asked to stop and starts again automatically")).to_be_visible()
    assert Workload.objects.get().units == 2


def test_pages_that_lead_to_a_launch_are_accessible_and_fit(
    open_page: Callable[..., Page], shop: Tenant, a100: GpuClass, cluster: Cluster, alice: User
) -> None:
    by = Actor(alice, via="page")
    options = Options(env=(("MODE", "fast"),), cpu=2, repository="https://github.com/owner/project", reference="main")
    wanted = LaunchSpec("train", "job", a100.slug, 1, "Python", volume="data", options=options)
    actions.launch("team-a", wanted, by=by)
    look_at(open_page("/teams/team-a/launch", as_user=alice))
    address = (
        f"/launch?class={a100.slug}&repo=https://github.com/a-long-owner-name/{'a-long-project-name' * 5}&colour=blue"
    )
    look_at(open_page(address, as_user=alice))
    look_at(open_page("/teams/team-a/workloads/train/change", as_user=alice))
    Run.objects.update(ended_at=timezone.now(), outcome="stopped")
    look_at(open_page("/teams/team-a/workloads", as_user=alice))
    look_at(open_page("/teams/team-a", as_user=alice))
    make.member(make.tenant(cluster, slug="team-b"), alice)
    look_at(open_page(address, as_user=alice))
