"""The launch page in a browser: what depends on the class changes with it, and terms are ticked where they stand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass, Image
from tenants.models import Tenant, TermsAccepted
from tests import make, mirrored
from tests.e2e.test_pages import look_at
from workloads.models import Workload

pytestmark = pytest.mark.browser
WORDS = "CUDA images do not run on AMD cards; MI300X needs a ROCm image."


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
    expect(page.get_by_text("you have not accepted yet")).to_be_visible()
    expect(page.get_by_text("No personal data.")).to_be_visible()
    page.get_by_label("I accept the terms of MI300X, version 2").check()
    page.get_by_role("button", name="Launch").click()
    page.wait_for_url("**/workloads/train")
    assert TermsAccepted.objects.get().version == 2


def test_it_works_without_script(open_page: Callable[..., Page], shop: Tenant, alice: User) -> None:
    page = open_page("/teams/team-a/launch", as_user=alice, java_script_enabled=False)
    page.get_by_label("Name").fill("train")
    page.get_by_label("Job", exact=True).check()
    fits = page.get_by_role("button", name="Show what fits this kind and class")
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
