"""The storage class of a new volume: which ones the site offers, and what a shared volume allows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.manifests import run as manifests
from cluster.manifests.run_spec import ClaimSpec
from cluster.manifests.site import DEFAULT_STORAGE, OfferedStorage, site_profile
from cluster.models import Cluster
from portal.core.errors import Refused
from tenants.models import Tenant
from tests.support.http.callers import bearer
from tests.support.rows import make
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Volume
from workloads.storage import policy

FAST, SHARED = OfferedStorage("fast"), OfferedStorage("efs", "ReadWriteMany")
OFFERED = (FAST, SHARED)


# ---- policy and manifest -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offered", "name", "found"),
    [
        ((), "", DEFAULT_STORAGE),
        (OFFERED, "", FAST),
        (OFFERED, "efs", SHARED),
        (OFFERED, "gp3", None),
        ((), "efs", None),
    ],
)
def test_what_a_new_volume_gets(offered: tuple[OfferedStorage, ...], name: str, found: OfferedStorage | None) -> None:
    assert policy.offered_storage(offered, name) == found
    refusal = policy.may_choose_storage(offered, name)
    assert (refusal is None) == (found is not None)
    if refusal is not None:
        assert (refusal.code, refusal.field) == ("unknown_storage_class", "volume_class")
        assert ("Choose fast or efs" if offered else "Leave it empty") in refusal.message


def test_several_workers_need_a_shared_volume() -> None:
    assert policy.may_use_on_workers("data", FAST, 1) is None
    assert policy.may_use_on_workers("data", SHARED, 4) is None
    refusal = policy.may_use_on_workers("data", FAST, 4)
    assert refusal is not None
    assert refusal.code == "volume_on_one_node"
    assert "4 workers" in refusal.message


@pytest.mark.parametrize("storage", [DEFAULT_STORAGE, FAST, SHARED])
def test_the_claim_names_it(storage: OfferedStorage) -> None:
    spec = manifests.volume_claim(ClaimSpec("workloads.volume.1", "team-a", "data", 5, storage))["spec"]
    assert spec["accessModes"] == [storage.access_mode]
    assert spec.get("storageClassName", "") == storage.name


def test_the_site_profile_offers_each_once() -> None:
    assert site_profile({"storage-classes": "fast\n# shared\nefs ReadWriteMany"}).storage_classes == OFFERED
    [problem] = site_profile({"storage-classes": "efs\nefs ReadWriteMany"}).problems
    assert "each StorageClass once" in problem.way_out


# ---- launches ----------------------------------------------------------------------------------------------------


@pytest.fixture
def site(cluster: Cluster) -> Cluster:
    Cluster.objects.filter(pk=cluster.pk).update(site={"storage-classes": "fast\nefs ReadWriteMany"})
    cluster.refresh_from_db()
    return cluster


@pytest.fixture
def team(site: Cluster, team_a: Tenant, a100: GpuClass) -> Tenant:
    make.grant(team_a, a100, units=8)
    return team_a


def refused(wanted: LaunchSpec, by: Actor) -> str:
    with pytest.raises(Refused) as found:
        actions.launch("team-a", wanted, by=by)
    return found.value.code


def gang(wanted: LaunchSpec, **changed: object) -> LaunchSpec:
    return replace(wanted, options=Options(workers=2), **changed)  # type: ignore[arg-type]


@pytest.mark.django_db
def test_a_volume_keeps_the_class_that_it_was_created_with(team: Tenant, job: LaunchSpec, by_alice: Actor) -> None:
    actions.launch("team-a", replace(job, volume="data"), by=by_alice)
    actions.launch("team-a", replace(job, name="two", volume="all", volume_class="efs"), by=by_alice)
    Cluster.objects.update(site={})
    actions.launch("team-a", replace(job, name="three", volume="later"), by=by_alice)
    # Whatever class is entered for it later.
    actions.launch("team-a", replace(job, name="four", volume="all", volume_class="gone"), by=by_alice)
    assert {one.name: one.storage for one in Volume.objects.all()} == {
        "data": FAST,
        "all": SHARED,
        "later": DEFAULT_STORAGE,
    }


@pytest.mark.django_db
def test_runs_share_what_is_shared(team: Tenant, job: LaunchSpec, by_alice: Actor) -> None:
    for name in ("one", "two"):
        actions.launch("team-a", replace(job, name=name, volume="all", volume_class="efs"), by=by_alice)
    actions.launch("team-a", gang(job, name="three", volume="all"), by=by_alice)
    assert Run.objects.filter(spec__claim="all").count() == 3
    actions.launch("team-a", replace(job, name="four", volume="mine"), by=by_alice)
    assert refused(replace(job, name="five", volume="mine"), by_alice) == "volume_in_use"
    assert refused(gang(job, name="five", volume="mine"), by_alice) == "volume_on_one_node"
    assert refused(gang(job, name="five", volume="new"), by_alice) == "volume_on_one_node"
    assert refused(replace(job, name="five", volume="new", volume_class="gp3"), by_alice) == "unknown_storage_class"
    assert not Volume.objects.filter(name="new").exists()


@pytest.mark.django_db
def test_a_declared_workload_cannot_outgrow_its_volume(team: Tenant, job: LaunchSpec, by_alice: Actor) -> None:
    actions.declare("team-a", replace(job, volume="mine"), by=by_alice)
    with pytest.raises(Refused, match="2 workers"):
        actions.declare("team-a", gang(job, volume="mine"), by=by_alice)


@pytest.mark.django_db
def test_pages_and_the_api_say_what_it_is(
    team: Tenant, job: LaunchSpec, by_alice: Actor, alice: User, client: Client
) -> None:
    client.force_login(alice)
    form = client.get("/teams/team-a/launch?kind=job").text
    assert '<option value="efs">efs, shared</option>' in form
    for name in ("one", "two", "three"):
        actions.launch("team-a", replace(job, name=name, volume="all", volume_class="efs"), by=by_alice)
    page = " ".join(client.get("/teams/team-a/volumes").text.split())
    assert "10 GiB of the storage class efs, for several runs at a time" in page
    assert "and by 2 more runs." in page
    assert page.count("Launch with this volume") == 1
    [row] = client.get("/api/v1/volumes?team=team-a", headers=bearer(alice, "read")).json()["items"]
    assert (row["storage_class"], row["access_mode"], row["used_by"]["workload"]) == ("efs", "ReadWriteMany", "one")
    body = {"name": "four", "kind": "job", "gpu_class": job.gpu_class, "image": "python", "command": ["true"],
            "volume": "new", "volume_class": "gp3"}  # fmt: skip
    answer = client.post(
        "/api/v1/workloads?team=team-a", body, content_type="application/json", headers=bearer(alice, "launch")
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown_storage_class")


@pytest.mark.django_db
def test_without_a_choice_the_form_does_not_ask(
    cluster: Cluster, team_a: Tenant, a100: GpuClass, images: None, alice: User, client: Client
) -> None:
    make.grant(team_a, a100, units=1)
    client.force_login(alice)
    for site in ({}, {"storage-classes": "fast"}):
        Cluster.objects.filter(pk=cluster.pk).update(site=site)
        assert "volume_class" not in client.get("/teams/team-a/launch").text


@pytest.mark.django_db
def test_the_preview_shows_the_claim_as_it_will_be(team: Tenant, job: LaunchSpec, alice: User, client: Client) -> None:
    client.force_login(alice)
    typed = {"name": "train", "kind": "job", "gpu_class": job.gpu_class, "units": "1", "image": "python",
             "command": "true", "volume": "new", "volume_class": "efs", "workers": "2", "look": "rest"}  # fmt: skip
    page = client.post("/teams/team-a/launch", typed).text
    assert "storageClassName: efs" in page
    assert "ReadWriteMany" in page
