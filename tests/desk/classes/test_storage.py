"""Storage in the catalog, on pages and in the API: it has its own section and page, and is in no sum of GPUs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor, system_actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from desk.catalog.file import actions as file_actions
from desk.catalog.file import queries as file_queries
from desk.catalog.queries import catalog_data
from desk.inbox.evidence import cards_per_unit, usage_evidence
from tenants.models import Namespace, Tenant
from tests.support.rows import make, mirrored
from usage.samples.models import UsageHour

pytestmark = pytest.mark.django_db


def text_of(user: User, path: str) -> str:
    client = Client()
    client.force_login(user)
    response = client.get(path)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


@pytest.fixture
def storage(cluster: Cluster) -> GpuClass:
    return make.storage(cluster, price_per_unit_hour="0.0002")


def test_the_catalog_has_a_section_for_it_and_no_card(
    a100: GpuClass, storage: GpuClass, team_a: Tenant, namespace_a: Namespace, alice: User
) -> None:
    make.grant(team_a, storage, units=50)
    mirrored.hardware_seen(a100.cluster)
    found = catalog_data(Actor(user=alice, via="page"))
    assert [item.gpu_class.slug for item in found.items] == [a100.slug]
    assert [option.slug for option in found.options()] == [a100.slug]
    page = text_of(alice, "/catalog")
    assert "Allocated to teams: 50 of 1000 GiB. Team A: quota of 50 GiB, 0 GiB used." in page
    assert "0.0002 per GiB-hour" in page
    assert "Team storage" not in text_of(alice, "/catalog/compare")


@pytest.mark.parametrize("part", ["", "?part=live"])
def test_its_page_says_what_is_true_of_volumes(storage: GpuClass, team_a: Tenant, alice: User, part: str) -> None:
    page = text_of(alice, f"/catalog/storage{part}")
    assert "Allocated to teams: 0 of 1000 GiB. Team A: quota of 0 GiB, usage unknown." in page
    for wrong in ("most free on one node", "Manifests", "Launch</", "core", "Between the cards"):
        assert wrong not in page


def test_without_a_limit_nothing_is_claimed(storage: GpuClass, charlie: User) -> None:
    GpuClass.objects.filter(pk=storage.pk).update(promise_limit=None)
    page = text_of(charlie, "/catalog/storage")
    assert "Allocated to teams: 0 GiB." in page
    assert "not set" in page


def test_programs_see_the_class_and_no_contract_and_capacity_leaves_it_out(
    a100: GpuClass, storage: GpuClass, team_a: Tenant, alice: User
) -> None:
    client = Client()
    client.force_login(alice)
    one = client.get("/api/v1/classes/storage").json()
    assert (one["unit"], one["contract"], one["interface"]) == ("GiB", None, "storage")
    assert one["capacity"]["allocatable"] is None
    capacity = client.get("/api/v1/capacity").json()
    assert [item["slug"] for item in capacity["items"]] == [a100.slug]


def test_the_catalog_file_says_it_and_reads_it(cluster: Cluster) -> None:
    text = "version: 1\nclasses:\n  disk:\n    name: Disks\n    interface: storage\n    life_cycle: active\n"
    outcome = file_actions.apply(text + "    promise_limit: 500\n", prune=False, dry_run=False, by=system_actor("test"))
    assert outcome.problems == []
    one = GpuClass.objects.get()
    assert (one.slug, one.is_storage, one.life_cycle, one.promise_limit) == ("disk", True, "active", 500)
    written = file_queries.export()
    assert "interface: storage" in written
    assert file_actions.apply(written, prune=True, dry_run=False, by=system_actor("test")).lines == []
    more = text + "  more:\n    name: More\n    interface: storage\n"
    refused = file_actions.apply(more, prune=False, dry_run=True, by=system_actor("test"))
    assert [str(problem) for problem in refused.problems] == [
        "classes.more.interface: This cluster already has a storage class; edit it, or retire it first."
    ]


def test_nobody_measures_it(a100: GpuClass, storage: GpuClass, team_a: Tenant) -> None:
    """Storage is never sampled: it has no peak, and the note about the measured classes does not mention it."""
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    for back in range(31 * 24):
        UsageHour.objects.create(cluster=a100.cluster, hour=hour - timedelta(hours=back), minutes=60, last_minute=hour)
    found = usage_evidence(team_a, [a100, storage])
    rows = dict(found.rows)
    assert (rows["Peak, 30 days"][a100.pk], rows["Peak, 30 days"][storage.pk]) == ("0", "–")
    assert rows["Mean, 30 days"][storage.pk] == "–"
    assert found.note == ""
    assert cards_per_unit(storage) is None
