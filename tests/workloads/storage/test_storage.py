"""New volumes and the team's storage: a volume that does not fit is refused at launch, with the remedy."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from portal.core.errors import Refused
from tenants.models import Namespace, Tenant
from tests.support.rows import make, mirrored
from tests.support.rows.claims import claim
from workloads.launch import actions
from workloads.launch import queries as launch_queries
from workloads.launch.types import LaunchSpec
from workloads.models import Volume
from workloads.storage.policy import StorageFacts, may_create
from workloads.storage.queries import storage_facts

pytestmark = pytest.mark.django_db


@pytest.fixture
def storage(granted: Tenant, a100: GpuClass) -> GpuClass:
    found = make.storage(a100.cluster)
    make.grant(granted, found, units=50)
    return found


@pytest.mark.parametrize(
    ("used", "gib", "told"),
    [
        (45, 5, ""),
        (45, 6, "50 GiB of storage quota (45 GiB used). A volume of 6 GiB does not fit, and volumes are not queued"),
        (0, 51, "50 GiB of storage quota (0 GiB used). A volume of 51 GiB does not fit."),
        (70, 1, "50 GiB of storage quota (70 GiB used). A volume of 1 GiB does not fit, and volumes are not queued"),
        (None, 50, ""),
        (None, 51, "50 GiB of storage quota (unknown how much is used). A volume of 51 GiB does not fit."),
    ],
)
def test_what_has_room(used: int | None, gib: int, told: str) -> None:
    refusal = may_create(StorageFacts("storage", "Storage", 50, used), gib)
    if not told:
        assert refusal is None
        return
    assert refusal is not None
    assert (refusal.code, refusal.field) == ("exceeds_storage", "volume_gib")
    assert told in refusal.message
    assert refusal.message.endswith("Request more, choose a smaller size, or attach an existing volume.")


def test_a_cluster_that_offers_no_storage_bounds_no_volume(
    granted: Tenant, namespace_a: Namespace, notebook: LaunchSpec, by_alice: Actor
) -> None:
    assert storage_facts(namespace_a) is None
    actions.launch(granted.slug, replace(notebook, volume="data", volume_gib=2000), by=by_alice)
    assert Volume.objects.get().size_gib == 2000


def test_a_volume_that_has_no_room_is_refused_and_one_that_is_there_is_attached(
    granted: Tenant, namespace_a: Namespace, storage: GpuClass, notebook: LaunchSpec, by_alice: Actor
) -> None:
    theirs = [claim("old", namespace_a.name, 20), claim("theirs", "elsewhere", 40)]
    mirrored.seen(storage.cluster, PersistentVolumeClaim=theirs)
    Volume.objects.create(namespace=namespace_a, name="old", size_gib=20)
    actions.launch(granted.slug, replace(notebook, volume="new", volume_gib=25), by=by_alice)
    # The new volume is not in the cluster yet, but counts already.
    assert storage_facts(namespace_a) == StorageFacts("storage", "Team storage", 50, 45)
    with pytest.raises(Refused, match="45 GiB used") as refused:
        actions.launch(granted.slug, replace(notebook, name="two", volume="more", volume_gib=6), by=by_alice)
    assert refused.value.refusal.field == "volume_gib"
    assert not Volume.objects.filter(name="more").exists()
    actions.launch(granted.slug, replace(notebook, name="two", volume="old", volume_gib=100), by=by_alice)


def test_the_form_shows_it_beside_the_size_and_leads_to_a_filled_request(
    granted: Tenant, namespace_a: Namespace, storage: GpuClass, notebook: LaunchSpec, alice: User
) -> None:
    mirrored.seen(storage.cluster, PersistentVolumeClaim=[claim("old", namespace_a.name, 45)])
    client = Client()
    client.force_login(alice)
    typed = {"kind": "notebook", "name": "one", "gpu_class": notebook.gpu_class, "units": "1", "image": notebook.image}
    answer = client.post("/teams/team-a/launch", {**typed, "volume": "new", "volume_gib": "10"})
    assert answer.status_code == 422
    assert "45 GiB used" in answer.content.decode()
    assert 'href="/teams/team-a/requests/new?units-storage=55#units-storage"' in answer.content.decode()
    form = client.get("/teams/team-a/requests/new?units-storage=55").content.decode()
    assert 'name="units-storage" inputmode="numeric" pattern="[0-9]*" autocomplete="off" value="55"' in form


def test_nothing_is_launched_on_storage(
    granted: Tenant, namespace_a: Namespace, storage: GpuClass, notebook: LaunchSpec, by_alice: Actor
) -> None:
    assert [one.slug for one, _ in launch_queries.reachable_classes(namespace_a)] == [notebook.gpu_class]
    with pytest.raises(Refused, match="Workloads cannot run on it"):
        actions.launch(granted.slug, replace(notebook, gpu_class=storage.slug), by=by_alice)
