"""Closing a team in a real browser: what goes, the name to type, the state that follows and the way back."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Namespace, QuotaRequest, Tenant
from tests.e2e.accessibility import look_at
from tests.support.rows import make, mirrored
from tests.tenants.lifecycle.test_lifecycle_pages import busy as busy

pytestmark = pytest.mark.browser


def test_a_team_is_closed_and_taken_back(
    busy: QuotaRequest,
    team_a: Tenant,
    a100: GpuClass,
    namespace_a: Namespace,
    olga: User,
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/teams/team-a/members", as_user=olga)
    page.get_by_role("link", name="Close…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("data (200 GiB); home (50 GiB), in total 250 GiB")).to_be_visible()
    look_at(page)
    dialog.get_by_label("Grace period").fill("48")
    dialog.get_by_label("Type team-a to confirm").fill("team-a")
    dialog.get_by_role("button", name="Close the team").click()
    expect(page.get_by_text("Being closed: no new workloads start.")).to_be_visible()
    look_at(page)
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("The team is active again.")).to_be_visible()
    namespace_a.refresh_from_db()
    assert (namespace_a.wanted, namespace_a.closes_at) == ("active", None)


def test_what_blocks_a_namespace_can_be_read_at_every_width(
    team_a: Tenant,
    namespace_a: Namespace,
    cluster: Cluster,
    olga: User,
    open_page: Callable[..., Page],
) -> None:
    held = "Some content in the namespace has finalizers remaining: example.org/keep in 1 resource instances"
    left = "Some resources are remaining: configmaps. has 1 resource instances"
    raw = {
        "metadata": {
            "name": namespace_a.name,
            "uid": "1",
            "resourceVersion": "1",
            "creationTimestamp": "2026-11-21T09:00:00Z",
            "deletionTimestamp": "2026-11-21T10:00:00Z",
            "labels": {"app.kubernetes.io/managed-by": "gpu-portal"},
        },
        "status": {
            "phase": "Terminating",
            "conditions": [
                {"type": "NamespaceFinalizersRemaining", "status": "True", "message": held},
                {"type": "NamespaceContentRemaining", "status": "True", "message": left},
            ],
        },
    }
    make.close(namespace_a.name)
    mirrored.seen(cluster, Namespace=[raw])
    for path in ("/teams/team-a/members", "/health"):
        page = open_page(path, as_user=olga)
        expect(page.get_by_text("Finalizer example.org/keep blocks the deletion of 1 object").first).to_be_visible()
        look_at(page)
