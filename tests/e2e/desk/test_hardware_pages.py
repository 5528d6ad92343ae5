"""The page of a class and the pages of nodes, in both themes and widths, with drawings and manifests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from accounts.core.actor import system_actor
from accounts.models import User
from catalog.classes.proposals import actions
from catalog.discovery import queries
from catalog.models import GpuClass, Image
from cluster.models import Cluster
from tenants.models import Namespace, Tenant
from tests.e2e.accessibility import look_at
from tests.support.rows import make, mirrored, running

pytestmark = pytest.mark.browser
SLICE = "a100-sxm4-80gb-2g-20gb"


@pytest.fixture
def catalog(cluster: Cluster, team_a: Tenant, namespace_a: Namespace, alice: User) -> dict[str, GpuClass]:
    """Everything that the simulated hardware has, as proposed; some of it in use, one class retiring and held."""
    mirrored.hardware_seen(cluster)
    found = queries.discover_cluster(cluster)
    assert found is not None
    classes = {
        one.slug: one
        for one in actions.accept_proposals(list(found.proposals), by=system_actor("test"), cluster=cluster)
    }
    make.grant(team_a, classes[SLICE], units=2)
    running.make_ready(running.workload(namespace_a, classes[SLICE], name="mine", by=alice))
    Image.objects.create(name="torch", version="2.9", reference="example.org/t:1", vendor="nvidia", min_cuda="12.4")
    Image.objects.create(name="rocm", version="7.0", reference="example.org/r:1", vendor="amd", contents="PyTorch")
    pods = [
        mirrored.pod(
            "mine", node="a100-mig", namespace=namespace_a.name, gpu_class=SLICE, **held("nvidia.com/mig-2g.20gb", 1)
        ),
        mirrored.pod("theirs", node="a100-mig", namespace="elsewhere", **held("nvidia.com/mig-1g.10gb", 3)),
    ]
    mirrored.hardware_seen(cluster, Pod=pods)
    GpuClass.objects.filter(slug=SLICE).update(
        interconnect="nvlink",
        interconnect_note="600 GB/s between any two GPUs, by nccl-tests.",
        interconnect_on=date(2026, 11, 3),
        eligibility="For groups with a project number.",
        terms="Do not mine.",
        terms_version=2,
        life_cycle="retiring",
        successor=classes["h100-80gb-hbm3"],
        retiring_message="The GPUs are worn.",
    )
    Client().get("/livez")  # the first request of a process imports the portal; browsers have less patience
    return classes


def held(resource: str, units: int) -> dict[str, Any]:
    return {resource: units}


@pytest.mark.parametrize("slug", [SLICE, "a100-sxm4-80gb-shared", "h100-80gb-hbm3", "cpu"])
def test_the_page_of_a_class(
    open_page: Callable[..., Page], catalog: dict[str, GpuClass], alice: User, slug: str
) -> None:
    look_at(open_page(f"/catalog/{slug}", as_user=alice))


PLANNED = "/operators/mig-layouts?set=NVIDIA-A100-SXM4-80GB:80:mixed&whole=4&1g.10gb=60&3g.40gb=9&2g.20gb=0"


@pytest.mark.parametrize("path", ["/nodes", "/nodes/a100-mig", "/nodes/h100", PLANNED])
def test_pages_of_nodes(open_page: Callable[..., Page], catalog: dict[str, GpuClass], olga: User, path: str) -> None:
    look_at(open_page(path, as_user=olga))


def test_help_me_choose_fits_with_the_longest_names(
    open_page: Callable[..., Page], catalog: dict[str, GpuClass], team_a: Tenant, alice: User
) -> None:
    make.grant(team_a, catalog["a100-sxm4-80gb-shared"], units=3)
    page = open_page("/catalog/choose?iso=shared&mem=10", as_user=alice)
    expect(page.get_by_role("link", name="Launch on A100 SXM4 80GB · time-sliced ×4")).to_be_visible()
    look_at(page)


def test_the_figures_of_a_class_are_fetched_again_by_themselves(
    open_page: Callable[..., Page], catalog: dict[str, GpuClass], cluster: Cluster, alice: User
) -> None:
    page = open_page("/catalog/mi300x-oam", as_user=alice)
    free = page.locator("#class-live dl.free div", has_text="free now")
    expect(free).to_contain_text("8 of 8 GPUs")
    pod = mirrored.pod("p", node="mi300x", namespace="elsewhere", **held("amd.com/gpu", 5))
    mirrored.hardware_seen(cluster, Pod=[pod])
    expect(free).to_contain_text("3 of 8 GPUs", timeout=20_000)


def test_a_manifest_is_copied_whole(open_page: Callable[..., Page], catalog: dict[str, GpuClass], alice: User) -> None:
    page = open_page("/catalog/h100-80gb-hbm3", as_user=alice, permissions=["clipboard-read", "clipboard-write"])
    page.locator("summary", has_text="Deployment").click()
    page.get_by_role("button", name="Copy Deployment").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    text = page.evaluate("navigator.clipboard.readText()")
    assert text.startswith("# Not queued:")
    assert "kind: ResourceClaimTemplate" in text
    assert text.rstrip().endswith('drop: ["ALL"]')


def test_the_page_of_a_class_works_without_script(
    open_page: Callable[..., Page], catalog: dict[str, GpuClass], alice: User
) -> None:
    page = open_page(f"/catalog/{SLICE}", as_user=alice, java_script_enabled=False)
    expect(page.get_by_role("img", name="GPU 1")).to_be_visible()
    page.locator("summary", has_text="Pod").click()
    expect(page.get_by_text("kind: Pod")).to_be_visible()
