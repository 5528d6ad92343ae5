"""An adoption in a real browser: proposed by an operator, accepted by the owner, undone by the operator."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import Delivery, User
from cluster.models import Cluster
from operations.adoption.findings import Effect, Finding
from operations.models import Adoption
from tenants.models import Namespace
from tests.e2e.accessibility import look_at
from tests.e2e.conftest import browser_type_launch_args, open_page
from tests.support.rows import mirrored

# Fixtures of another folder, by their names.
__all__ = ["browser_type_launch_args", "open_page"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
READ = [
    Finding(Effect.LOST, "controller", "Deployment", "web", "Pods that run go on. New ones are refused."),
    Finding(Effect.CHANGED, "label", "Namespace", "pod-security.kubernetes.io/enforce", "It becomes restricted."),
    Finding(Effect.KEPT, "quota", "ResourceQuota", "team-quota", "It stays and counts the portal's pods too."),
]
POD = {
    "kind": "Pod",
    "metadata": {"name": "bare", "namespace": "physics"},
    "spec": {"nodeName": "a100-1", "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]},
    "status": {"phase": "Running"},
}


def test_an_operator_proposes_the_owner_accepts_and_the_operator_undoes(
    cluster: Cluster,
    alice: User,
    olga: User,
    open_page: Callable[..., Page],
) -> None:
    found = {"kind": "Namespace", "metadata": {"name": "physics"}}
    mirrored.seen(cluster, Namespace=[mirrored.with_metadata(found)], Pod=[mirrored.with_metadata(POD)])
    page = open_page("/operators/teams", as_user=olga)
    page.get_by_role("link", name="Adoptions").click()
    look_at(page)
    page.get_by_role("link", name="Propose its adoption").click()
    expect(page.get_by_role("textbox", name="Namespace")).to_have_value("physics")
    page.get_by_label("Short name of the team").fill("physics")
    page.get_by_role("textbox", name="Name of the team", exact=True).fill("Physics")
    page.get_by_role("textbox", name="Owner").fill("nobody@example.org")
    page.get_by_role("button", name="Propose").click()
    expect(page.get_by_text("No active account has the address")).to_be_visible()
    page.get_by_role("textbox", name="Owner").fill(alice.email)
    page.get_by_role("button", name="Propose").click()
    expect(page.get_by_role("heading", name="Adoption of physics")).to_be_visible()
    expect(
        page.get_by_text("What the namespace contains is read and shown when the cluster has consented.")
    ).to_be_visible()
    expect(page.get_by_text("kubectl label namespace physics gpu-portal/adopt=physics")).to_be_visible()
    [mail] = Delivery.objects.all()
    assert (mail.user, mail.subject) == (alice, "Decide whether Physics takes over the namespace physics")

    Adoption.objects.update(consent="physics", read_at=timezone.now(), findings=[one.as_json() for one in READ])
    page = open_page("/teams/physics/adoption", as_user=alice)
    expect(page.get_by_role("heading", name="Lost 1")).to_be_visible()
    look_at(page)
    page.get_by_role("button", name="Accept the adoption").click()
    expect(page.get_by_text("accepted", exact=True)).to_be_visible()
    row = Adoption.objects.get()
    assert (row.accepted_by, row.accepted) == (alice, [["controller", "Deployment", "web"]])

    Adoption.objects.update(findings=[one.as_json() for one in READ] + [{**READ[0].as_json(), "name": "second"}])
    page.reload()
    expect(page.get_by_text("it must be accepted again")).to_be_visible()

    now = timezone.now()
    Adoption.objects.update(consent="physics", adopted_at=now - timedelta(minutes=1))
    Namespace.objects.update(origin=Namespace.Origin.ADOPTED)
    page = open_page("/teams/physics/adoption", as_user=olga)
    look_at(page)
    page.get_by_role("link", name="Undo the adoption").click()
    page.get_by_role("button", name="Undo the adoption").click()
    expect(page.get_by_text("being undone")).to_be_visible()
    assert Namespace.objects.get().origin == Namespace.Origin.UNADOPTED
