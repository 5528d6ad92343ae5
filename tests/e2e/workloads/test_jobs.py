"""A job in a browser: what only jobs take appears with the kind, with and without script; its workers on its page."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from accounts.models import User
from catalog.models import GpuClass, Image
from tenants.models import Namespace, Tenant
from tests.e2e.accessibility import look_at
from tests.support.rows import make, mirrored, running
from workloads.models import Run

pytestmark = pytest.mark.browser


@pytest.fixture
def shop(team_a: Tenant, a100: GpuClass) -> Tenant:
    """One class that lends units, and an image for each kind."""
    mirrored.hardware_seen(a100.cluster)
    GpuClass.objects.update(borrowing_limit=2)
    make.grant(team_a, a100, units=4)
    Image.objects.create(name="Python", reference="docker.io/library/python:3.14-slim", kind="job")
    Image.objects.create(name="Lab", reference="quay.io/jupyter/minimal-notebook:1", kind="notebook")
    return team_a


def fill(page: Page) -> None:
    page.get_by_label("Workers").fill("4")
    page.get_by_label("Script").fill("set -e\ntorchrun train.py")
    page.get_by_label("Retries").fill("2")


@pytest.mark.parametrize("has_script", [True, False])
def test_a_job_with_several_workers(
    has_script: bool, open_page: Callable[..., Page], shop: Tenant, alice: User
) -> None:
    page = open_page("/teams/team-a/launch", as_user=alice, java_script_enabled=has_script)
    expect(page.get_by_label("Workers")).to_have_count(0)
    page.get_by_label("Job", exact=True).check()
    if not has_script:
        page.get_by_role("button", name="Update options").click()
    fill(page)
    page.get_by_label("Name").fill("train")
    if has_script:
        expect(page.locator("#effect")).to_contain_text("4 GPU-hours per hour")
        expect(page.locator("#effect")).to_contain_text("Confirm that this job uses checkpointing")
    page.get_by_role("button", name="Launch").click()
    expect(page.locator("#id_checkpoints_error")).to_contain_text("can run on borrowed units")
    page.get_by_label("This job uses checkpointing").check()
    if has_script:
        expect(page.locator("#effect")).not_to_contain_text("Not possible")
    page.get_by_role("button", name="Launch").click()
    page.wait_for_url("**/workloads/train")
    expect(page.get_by_text("4 workers × 1 GPU")).to_be_visible()
    spec = Run.objects.get().spec
    assert (spec["workers"], spec["retries"], spec["checkpoints"]) == (4, 2, True)
    assert spec["script"] == "set -e\ntorchrun train.py"


def test_what_is_typed_while_the_choices_are_fetched_stays(
    open_page: Callable[..., Page], shop: Tenant, alice: User
) -> None:
    page = open_page("/teams/team-a/launch?kind=job", as_user=alice)
    held: list[Route] = []
    page.route("**/teams/team-a/launch*", lambda route: held.append(route))
    with page.expect_request(lambda request: request.method == "POST"):
        page.get_by_label("Workers").fill("3")
    page.get_by_label("Retries").fill("2")
    page.get_by_label("Script").fill("torchrun train.py")
    page.unroute("**/teams/team-a/launch*")
    for route in held:
        route.continue_()
    expect(page.locator("#effect")).to_contain_text("3 GPU-hours per hour")
    expect(page.get_by_label("Retries")).to_have_value("2")
    expect(page.get_by_label("Script")).to_have_value("torchrun train.py")


def test_back_to_a_notebook_what_jobs_take_is_gone(open_page: Callable[..., Page], shop: Tenant, alice: User) -> None:
    page = open_page("/teams/team-a/launch?kind=job", as_user=alice)
    expect(page.get_by_label("Workers")).to_have_count(1)
    page.get_by_label("Notebook", exact=True).check()
    for label in ("Workers", "Script", "Command", "This job uses checkpointing"):
        expect(page.get_by_label(label)).to_have_count(0)


def test_its_form_is_accessible_and_fits(open_page: Callable[..., Page], shop: Tenant, alice: User) -> None:
    page = open_page("/teams/team-a/launch?kind=job", as_user=alice)
    look_at(page)


def test_its_page_is_accessible_and_fits(
    open_page: Callable[..., Page], shop: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    found = running.workload(namespace_a, a100, by=alice, kind="job", options={"workers": 3, "script": "ls"})
    pod = running.make_ready(found)
    pod.record = {**pod.record, "labels": {"batch.kubernetes.io/job-completion-index": "1"}}
    pod.save()
    page = open_page("/teams/team-a/workloads/one", as_user=alice)
    expect(page.get_by_role("link", name="Log of worker 1")).to_be_visible()
    look_at(page)
