"""A job may ask for a level of its class's topology: checked before anything is written, and kept by what follows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass, Image
from cluster.manifests import run as manifests
from cluster.manifests.run_spec import RunSpec
from portal.core.errors import Refused
from tenants.models import Tenant
from tests.catalog.classes.test_topology import HOST, RACK, RACKS, topology
from tests.support.rows import make, mirrored
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Workload

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("granted")]
ASKED = Options(workers=2, topology_level=RACK, topology_required=True)
FIELD = 'name="topology_level"'


@pytest.fixture
def racked(a100: GpuClass) -> GpuClass:
    GpuClass.objects.filter(pk=a100.pk).update(topology=RACKS)
    mirrored.seen(a100.cluster, Topology=[topology(RACKS, RACK, HOST)])
    a100.refresh_from_db()
    return a100


def annotations(run: Run) -> Any:
    found = manifests.job(RunSpec.from_json(run.spec))["spec"]["template"]["metadata"]["annotations"]
    return {name: value for name, value in found.items() if name.startswith("kueue.x-k8s.io/")}


@pytest.mark.parametrize(
    ("options", "name"),
    [(ASKED, "required"), (replace(ASKED, topology_required=False), "preferred")],
)
def test_it_becomes_the_annotation_of_the_pods(
    racked: GpuClass, job: LaunchSpec, by_alice: Actor, options: Options, name: str
) -> None:
    actions.launch("team-a", replace(job, options=options), by=by_alice)
    run = Run.objects.get()
    assert annotations(run) == {f"kueue.x-k8s.io/podset-{name}-topology": RACK}
    assert run.spec["topology_levels"] == [RACK, HOST]


def test_without_a_level_and_in_runs_of_an_earlier_release_the_annotation_is_as_before(
    racked: GpuClass, job: LaunchSpec, by_alice: Actor
) -> None:
    actions.launch("team-a", job, by=by_alice)
    run = Run.objects.get()
    anywhere = {"kueue.x-k8s.io/podset-unconstrained-topology": "true"}
    assert annotations(run) == anywhere
    for key in ("topology_level", "topology_required", "topology_levels"):
        del run.spec[key]
    assert annotations(run) == anywhere


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"topology_level": "rack"}, "bad_topology_level", f"has no level 'rack'. Its levels are {RACK}, {HOST}."),
        ({"topology_level": ""}, "bad_topology_level", "needs a level"),
    ],
)
def test_what_the_class_does_not_have_is_refused_before_anything_is_written(
    racked: GpuClass, job: LaunchSpec, by_alice: Actor, changes: dict[str, Any], code: str, words: str
) -> None:
    for act in (actions.launch, actions.declare):
        with pytest.raises(Refused) as refused:
            act("team-a", replace(job, options=replace(ASKED, **changes)), by=by_alice)
        assert (refused.value.code, refused.value.refusal.field) == (code, "topology_level")
        assert words in refused.value.refusal.message
    assert not Workload.objects.exists()


def test_a_class_without_levels_and_a_notebook_refuse(
    a100: GpuClass, job: LaunchSpec, notebook: LaunchSpec, by_alice: Actor
) -> None:
    with pytest.raises(Refused) as refused:
        actions.launch("team-a", replace(job, options=ASKED), by=by_alice)
    assert refused.value.code == "bad_topology_level"
    assert "has no topology with levels" in refused.value.refusal.message
    with pytest.raises(Refused) as refused:
        actions.launch("team-a", replace(notebook, options=Options(topology_level=RACK)), by=by_alice)
    assert (refused.value.code, refused.value.refusal.field) == ("jobs_only", "topology_level")


def test_unknown_levels_refuse_nothing(a100: GpuClass, job: LaunchSpec, by_alice: Actor) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(topology=RACKS)
    actions.launch("team-a", replace(job, options=ASKED), by=by_alice)
    assert Run.objects.get().spec["topology_levels"] == [RACK]


def test_it_is_kept_by_a_copy_a_change_and_the_next_run_until_the_class_loses_it(
    racked: GpuClass, job: LaunchSpec, by_alice: Actor, alice: User, client: Client
) -> None:
    actions.launch("team-a", replace(job, options=ASKED), by=by_alice)
    client.force_login(alice)
    assert f"all workers in one {RACK}, required" in client.get("/teams/team-a/workloads/train").content.decode()
    for address in ("launch?like=train", "workloads/train/change"):
        page = client.get(f"/teams/team-a/{address}").content.decode()
        assert f'<option value="{RACK}" selected>' in page, address
        assert f"<b>Topology:</b> all workers in one {RACK}, required" in page, address
    Run.objects.update(ended_at="2026-11-21T09:00:00Z", outcome="failed")
    actions.start("team-a", "train", by=by_alice)
    assert annotations(Run.objects.latest("pk")) == {"kueue.x-k8s.io/podset-required-topology": RACK}

    Run.objects.update(ended_at="2026-11-21T09:00:00Z", outcome="failed")
    GpuClass.objects.update(topology="")
    with pytest.raises(Refused) as refused:
        actions.start("team-a", "train", by=by_alice)
    assert (refused.value.code, refused.value.refusal.field) == ("bad_topology_level", "topology_level")


def test_the_field_is_there_only_for_jobs_on_a_class_with_levels(
    racked: GpuClass, team_a: Tenant, images: list[Image], alice: User, client: Client
) -> None:
    plain = make.gpu_class(racked.cluster, slug="plain", node_labels={"gpu": "plain"})
    make.grant(team_a, plain, units=2)
    client.force_login(alice)
    assert FIELD in client.get(f"/teams/team-a/launch?class={racked.slug}&kind=job").content.decode()
    assert FIELD not in client.get(f"/teams/team-a/launch?class={racked.slug}&kind=notebook").content.decode()
    # The class is changed after a level was chosen: the other class has none, and nothing of it is left over.
    sent = {"look": "class", "kind": "job", "units": "1", "workers": "2", "name": "x", "image": "python"}
    sent |= {"topology_level": RACK, "topology_required": "on"}
    page = client.post("/teams/team-a/launch", {**sent, "gpu_class": "plain"}).content.decode()
    assert FIELD not in page
    assert "Not possible" not in page
    page = client.post("/teams/team-a/launch", {**sent, "gpu_class": racked.slug}).content.decode()
    assert "podset-required-topology: example.org/rack" in page, "the preview shows the Job"


def test_a_level_that_does_not_exist_is_refused_beside_its_field(
    racked: GpuClass, images: list[Image], alice: User, client: Client
) -> None:
    client.force_login(alice)
    sent = {"kind": "job", "units": "1", "name": "x", "image": "python", "gpu_class": racked.slug}
    answer = client.post("/teams/team-a/launch", {**sent, "visibility": "private", "topology_level": "zone"})
    assert answer.status_code == 422
    assert 'id="id_topology_level_error"' in answer.content.decode()
