"""A signed-in stranger finds nothing of another team: by page, button, token, or the address of a notebook."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Event, User
from catalog.models import GpuClass
from tenants.models import Namespace, Tenant
from tests.support.rows import make, running
from workloads.models import Run, Ticket, Workload

PAGES = ("tenant-home", "workloads", "launch", "requests", "request-new", "team")
OF_ONE = ("workload", "workload-actions", "workload-delete", "workload-open", "workload-start", "workload-stop")
API = (
    ("get", "api-workload"),
    ("put", "api-workload"),
    ("delete", "api-workload"),
    ("get", "api-workload-runs"),
    ("post", "api-workload-runs"),
    ("post", "api-workload-stop"),
)
LAUNCH = {"name": "one", "kind": "notebook", "gpu_class": "a100", "units": 1, "image": "image"}


@pytest.fixture
def theirs(namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    """Alice's notebook, ready to be opened."""
    found = running.workload(namespace_a, a100, by=alice)
    running.make_ready(found)
    return found


@pytest.fixture
def stranger(theirs: Workload, charlie: User) -> Client:
    """Charlie has a team of his own, in which he may do everything."""
    own = make.tenant(theirs.namespace.cluster, slug="team-c", namespace=f"{theirs.namespace.name}-c")
    make.member(own, charlie)
    client = Client()
    client.force_login(charlie)
    return client


def addresses(workload: Workload) -> list[tuple[str, str]]:
    tenant = workload.tenant.slug
    found = [(method, reverse(name, args=[tenant])) for name in PAGES for method in ("get", "post")]
    found += [(method, reverse(name, args=[tenant, workload.name])) for name in OF_ONE for method in ("get", "post")]
    found += [(method, reverse(name, args=[workload.name]) + f"?team={tenant}") for method, name in API]
    found.append(("get", reverse("api-workload-run", args=[workload.name, 1]) + f"?team={tenant}"))
    return [*found, ("get", reverse("open", args=[workload.origin]))]


def test_a_stranger_meets_nothing_and_changes_nothing(stranger: Client, theirs: Workload) -> None:
    answers = {}
    for method, address in addresses(theirs):
        call = getattr(stranger, method)
        data = {**LAUNCH, "confirm": theirs.name} if method != "get" else {}
        response = call(address, data, **({"content_type": "application/json"} if "/api/" in address else {}))
        answers[method, address] = response.status_code

    assert {key: status for key, status in answers.items() if status not in (404, 405)} == {}
    assert set(answers.values()) == {404, 405}
    assert stranger.get(f"{reverse('api-workloads')}?team=team-a").status_code == 404
    run = Run.objects.get()
    assert (run.stop_requested_at, Workload.objects.get().delete_requested_at) == (None, None)
    assert not Ticket.objects.exists()
    assert not Event.objects.filter(tenant="team-a").exists()


def test_what_a_member_gets_there_is_something(theirs: Workload, alice: User, team_a: Tenant) -> None:
    """Shows that the addresses above are right: they work for members of the team."""
    client = Client()
    client.force_login(alice)

    found = {address: client.get(address).status_code for method, address in addresses(theirs) if method == "get"}

    assert {address: status for address, status in found.items() if status not in (200, 302, 405)} == {}
