"""What the launch page offers for a kind and a class; anything else is refused even if it is sent."""

from __future__ import annotations

import html
import re
import shlex
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass, Image
from cluster.manifests import run as manifests
from cluster.manifests.run_spec import RunSpec
from cluster.models import Cluster, MirrorNode
from portal.core.errors import Refused
from tenants.models import ClassAccess, Grant, Tenant
from tests.support.rows import make, mirrored
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Volume, Workload

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("granted")]
DIGEST = "sha256:" + "5c" * 32
REFERENCE = "docker.io/pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime"


@pytest.fixture
def pytorch(images: list[Image]) -> Image:
    return Image.objects.create(
        name="PyTorch", version="2.9.1", reference=REFERENCE, kind="job", vendor="nvidia", min_cuda="12.0", position=1
    )


@pytest.fixture
def mi300x(cluster: Cluster, team_a: Tenant, unique: str) -> GpuClass:
    found = make.gpu_class(
        cluster,
        slug=f"mi300x-{unique}",
        name="MI300X",
        vendor="amd",
        resource="amd.com/gpu",
        node_labels={"amd": "yes"},
    )
    make.grant(team_a, found, units=1)
    return found


def drivers(a100: GpuClass, *versions: str) -> None:
    """One node of the class for each of these CUDA versions."""
    for number, version in enumerate(versions):
        MirrorNode.objects.create(
            cluster_id=a100.cluster_id,
            name=f"a100-{number}",
            uid=str(number),
            resource_version=1,
            created_at=timezone.now(),
            schedulable=True,
            ready=True,
            record={"labels": {**a100.node_labels, "nvidia.com/cuda.runtime-version.full": version}},
        )


def options(page: str) -> dict[str, bool]:
    """The values of the image options in their order, and whether each can be selected."""
    select = re.search(r'<select name="image".*?</select>', page, re.DOTALL)
    assert select
    found = re.findall(r'<option value="([^"]*)"([^>]*)>', select[0])
    return {value: "disabled" not in rest for value, rest in found}


# ---- images ----------------------------------------------------------------------------------------------------------


def test_an_image_of_another_vendor_is_greyed_with_the_sentence_and_refused(
    pytorch: Image, mi300x: GpuClass, job: LaunchSpec, alice: User, client: Client
) -> None:
    words = "CUDA images do not run on AMD GPUs; MI300X needs a ROCm image."
    client.force_login(alice)
    page = client.get(f"/teams/team-a/launch?kind=job&gpu_class={mi300x.slug}").content.decode()
    assert options(page) == {"python": True, "PyTorch": False, "absent": True, "minimal": True}
    assert words in page

    typed = {"kind": "job", "name": "train", "gpu_class": mi300x.slug, "units": 1, "image": "PyTorch"}
    answer = client.post("/teams/team-a/launch", typed)
    assert answer.status_code == 422
    assert 'id="id_image_error"' in answer.content.decode()
    with pytest.raises(Refused) as refused:
        actions.launch("team-a", replace(job, gpu_class=mi300x.slug, image="PyTorch"), by=Actor(alice, via="page"))
    assert refused.value.refusal.body() == {"code": "image_does_not_run", "message": words, "field": "image"}


def test_an_old_driver_is_seen_in_the_same_statement(
    pytorch: Image, a100: GpuClass, job: LaunchSpec, by_alice: Actor, django_assert_num_queries: Any
) -> None:
    drivers(a100, "12.8", "11.8")
    with pytest.raises(Refused, match=r"PyTorch needs CUDA 12\.0, but the drivers of .* support 11\.8"):
        actions.launch("team-a", replace(job, image="PyTorch"), by=by_alice)

    MirrorNode.objects.filter(name="a100-1").delete()
    with django_assert_num_queries(7):
        actions.launch("team-a", replace(job, image="PyTorch"), by=by_alice)


def test_an_unknown_driver_is_said_and_not_refused(
    pytorch: Image, a100: GpuClass, job: LaunchSpec, by_alice: Actor, alice: User, client: Client
) -> None:
    client.force_login(alice)
    page = client.get("/teams/team-a/launch?kind=job").content.decode()
    assert options(page)["PyTorch"]
    assert "the version supported by the drivers of A100 80GB whole card is unknown" in page
    actions.launch("team-a", replace(job, image="PyTorch"), by=by_alice)


def test_a_digest_is_frozen_in_the_run(pytorch: Image, job: LaunchSpec, by_alice: Actor) -> None:
    Image.objects.filter(pk=pytorch.pk).update(digest=DIGEST)
    workload = actions.launch("team-a", replace(job, image="PyTorch"), by=by_alice)
    assert workload.image == f"{REFERENCE}@{DIGEST}"
    assert Run.objects.get().spec["image"] == f"{REFERENCE}@{DIGEST}"

    # The value that the API returns may be sent back.
    again, _ = actions.declare("team-a", replace(job, image=workload.image), by=by_alice)
    assert again.image == workload.image


def test_a_deprecated_image_comes_last_names_its_successor_and_starts(
    pytorch: Image, job: LaunchSpec, by_alice: Actor, alice: User, client: Client
) -> None:
    Image.objects.filter(pk=pytorch.pk).update(
        deprecated_since=date(2026, 1, 31), successor=Image.objects.get(name="python")
    )
    client.force_login(alice)
    page = client.get("/teams/team-a/launch?kind=job").content.decode()
    assert list(options(page))[:2] == ["python", "PyTorch"]
    assert "Deprecated since 31 Jan 2026; use python instead." in page
    actions.launch("team-a", replace(job, image="PyTorch"), by=by_alice)


# ---- notebooks and jobs ----------------------------------------------------------------------------------------------


def test_a_class_for_jobs_takes_no_notebook_and_is_offered_for_jobs(
    a100: GpuClass, mi300x: GpuClass, notebook: LaunchSpec, by_alice: Actor, alice: User, client: Client
) -> None:
    GpuClass.objects.filter(pk=mi300x.pk).update(kinds="job")
    with pytest.raises(Refused) as refused:
        actions.launch("team-a", replace(notebook, gpu_class=mi300x.slug), by=by_alice)
    assert refused.value.refusal.body() == {
        "code": "kind_not_offered",
        "message": "MI300X is for jobs only. Choose another class for a notebook.",
        "field": "gpu_class",
    }

    client.force_login(alice)

    def offered(query: str) -> list[str]:
        page = client.get(f"/teams/team-a/launch{query}").content.decode()
        return re.findall(r'name="gpu_class" value="([^"]+)"', page)

    assert offered("") == [a100.slug]
    assert offered("?kind=job") == [a100.slug, mi300x.slug]
    assert offered(f"?gpu_class={mi300x.slug}") == [a100.slug, mi300x.slug]  # the class determines the kind


def test_looking_at_what_fits_launches_nothing_and_keeps_what_was_typed(
    mi300x: GpuClass, pytorch: Image, alice: User, client: Client
) -> None:
    client.force_login(alice)
    typed = {"kind": "job", "name": "train", "gpu_class": mi300x.slug, "units": 1, "image": "python", "volume": "data"}
    answer = client.post("/teams/team-a/launch", {**typed, "look": "all"})
    page = answer.content.decode()
    assert answer.status_code == 200
    assert Run.objects.count() == 0
    assert options(page)["PyTorch"] is False
    assert 'value="train"' in page
    assert 'value="data"' in page
    assert re.search(rf'value="{mi300x.slug}"[^>]*checked', page)


# ---- offered classes -------------------------------------------------------------------------------------------------


def test_a_class_of_named_teams_is_unknown_to_others(
    mi300x: GpuClass, job: LaunchSpec, team_a: Tenant, by_alice: Actor
) -> None:
    GpuClass.objects.filter(pk=mi300x.pk).update(visibility="named")
    wanted = replace(job, gpu_class=mi300x.slug)
    with pytest.raises(Refused) as refused:
        actions.launch("team-a", wanted, by=by_alice)
    assert refused.value.code == "unknown_class"
    ClassAccess.objects.create(tenant=team_a, gpu_class=mi300x)
    actions.launch("team-a", wanted, by=by_alice)


def test_what_is_held_queues_and_what_is_leaving_is_only_shown(
    a100: GpuClass, mi300x: GpuClass, job: LaunchSpec, by_alice: Actor, alice: User, client: Client
) -> None:
    now = timezone.now()
    GpuClass.objects.filter(pk=mi300x.pk).update(
        held_since=now, held_until=now + timedelta(days=2), held_reason="a driver update"
    )
    GpuClass.objects.filter(pk=a100.pk).update(life_cycle="retiring", successor=mi300x)
    client.force_login(alice)
    page = client.get("/teams/team-a/launch?kind=job").content.decode()
    assert "for a driver update; expected to resume at" in page
    assert "New workloads wait until scheduling resumes." in page
    assert "Its successor is MI300X. New workloads cannot start on it." in page
    assert f'name="gpu_class" value="{a100.slug}"' not in page

    actions.launch("team-a", replace(job, gpu_class=mi300x.slug), by=by_alice)
    with pytest.raises(Refused, match=r"is retiring: new runs cannot start on it\. Choose MI300X\."):
        actions.launch("team-a", replace(job, name="more"), by=by_alice)


def test_the_page_asks_as_often_for_many_classes_as_for_one(
    a100: GpuClass, images: list[Image], cluster: Cluster, team_a: Tenant, alice: User, client: Client
) -> None:
    client.force_login(alice)

    def asked() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert client.get("/teams/team-a/launch").status_code == 200
        return len(seen)

    one = asked()
    for number in range(4):
        more = make.gpu_class(
            cluster, slug=f"more-{number}", node_labels={"n": str(number)}, terms_version=1, terms="Be kind.",
            life_cycle="retiring" if number % 2 else "active", successor=a100 if number % 2 else None,
        )  # fmt: skip
        make.grant(team_a, more, units=1)
        Image.objects.create(name=f"image {number}", reference=f"x/y:{number}", successor=images[0])
    assert asked() == one


# ---- all options -----------------------------------------------------------------------------------------------------

ALL = {
    "cpu": "1", "memory_gib": "2", "shared_memory_gib": "1", "volume": "data", "volume_gib": "20",
    "mount_path": "/home/work/data", "env": "MODE=fast = yes\r\n\r\nEMPTY=\r\n", "repository": "https://github.com/a/b.git",
    "reference": "v1", "run_hours": "5",
}  # fmt: skip


def typed(a100: GpuClass, **more: Any) -> dict[str, Any]:
    return {"kind": "job", "name": "train", "gpu_class": a100.slug, "units": 2, "image": "python", **more}


@pytest.fixture
def her(alice: User, images: list[Image]) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def text(response: Any) -> str:
    return html.unescape(response.content.decode())


def test_everything_that_may_be_said_reaches_the_run(her: Client, a100: GpuClass) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(cpu_per_unit=8, memory_gib_per_unit=64)
    answer = her.post("/teams/team-a/launch", typed(a100, command="python 'a b.py'", **ALL))
    assert answer.status_code == 302
    spec = Run.objects.get().spec
    names = ("cpu", "memory_gib", "shared_memory_gib", "claim", "mount_path", "env", "repository", "reference")
    assert {name: spec[name] for name in names} == {
        "cpu": 1,
        "memory_gib": 2,
        "shared_memory_gib": 1,
        "claim": "data",
        "mount_path": "/home/work/data",
        "env": [["EMPTY", ""], ["MODE", "fast = yes"]],
        "repository": "https://github.com/a/b.git",
        "reference": "v1",
    }
    assert (spec["command"], spec["run_minutes"]) == (["python", "a b.py"], 300)
    assert Volume.objects.get().size_gib == 20


ALWAYS_SHOWN = {"run_hours", "volume", "volume_gib", "mount_path"}


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("cpu", "17", "17 cores requested; 2 units of A100 80GB whole card allow 1 to 16."),
        ("cpu", "-1", "-1 cores requested"),
        ("memory_gib", "999", "999 GiB of memory requested; 2 units"),
        (
            "shared_memory_gib",
            "200",
            "200 GiB of shared memory requested. It is part of the memory. Enter 1 to 128 GiB.",
        ),
        ("volume", "My Data", "Use lower-case letters, digits and single hyphens for a volume's name"),
        ("volume_gib", "99999", "less than or equal to 2048"),
        ("mount_path", "/etc", "A path needs a volume to mount. Enter a volume"),
        ("env", "LD_PRELOAD=/tmp/x.so", "LD_PRELOAD is reserved"),
        ("env", "A=1\nNVIDIA_VISIBLE_DEVICES=all", "NVIDIA_VISIBLE_DEVICES is reserved"),
        ("env", "A=1\nB", "Line 2 has no '='. Enter NAME=value."),
        ("env", "A=1\n A=2", "A is set twice. Remove one."),
        ("repository", "file:///etc", "A repository is cloned over HTTPS."),
        ("reference", "main", "A branch or tag needs a repository. Enter the address of the repository."),
        ("run_hours", "0", "Time limit of 0 h requested"),
    ],
)
def test_a_refusal_stands_beside_its_field(field: str, value: str, words: str, her: Client, a100: GpuClass) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(cpu_per_unit=8, memory_gib_per_unit=64)
    answer = her.post("/teams/team-a/launch", typed(a100, **{field: value}))
    assert answer.status_code == 422
    beside = re.search(rf'<div id="id_{field}_error">(.*?)</div>', text(answer), re.DOTALL)
    assert beside
    assert words in beside[1]
    # A refused value is not hidden.
    assert ('<details class="more" open>' in text(answer)) is (field not in ALWAYS_SHOWN)
    assert not Run.objects.exists()


def test_where_files_live_is_said_before_it_launches(her: Client, a100: GpuClass) -> None:
    assert "Files are deleted when it stops. Use a volume to keep them." in text(her.get("/teams/team-a/launch"))
    kept = text(her.post("/teams/team-a/launch", typed(a100, volume="data", look="rest")))
    assert "Files in <code>/home/work</code> are kept on the volume <b>data</b>" in kept
    deeper = typed(a100, volume="data", mount_path="/home/work/sets", look="rest")
    assert "Files in <code>/home/work/sets</code> are kept" in text(her.post("/teams/team-a/launch", deeper))


def test_more_is_closed_until_something_in_it_is_filled_in(her: Client, a100: GpuClass) -> None:
    assert '<details class="more">' in text(her.get("/teams/team-a/launch"))
    plain = typed(a100, volume_gib="10", env="", look="rest")
    assert '<details class="more">' in text(her.post("/teams/team-a/launch", plain))
    assert '<details class="more" open>' in text(her.post("/teams/team-a/launch", {**plain, "env": "A=1"}))
    assert '<details class="more" open>' in text(her.post("/teams/team-a/launch", {**plain, "cpu": "2"}))


# ---- figures of the selected class -----------------------------------------------------------------------------------


def card(page: str, slug: str) -> str:
    """The text of the card of a class."""
    found = re.search(rf'value="{slug}" id="id_gpu_class_.*?<div id="outlook-{slug}">(.*?)</div>', page, re.DOTALL)
    assert found
    return " ".join(re.sub(r"<[^>]+>", " ", found[1]).split())


def test_the_figures_follow_the_units(
    her: Client, a100: GpuClass, mi300x: GpuClass, team_a: Tenant, by_alice: Actor, job: LaunchSpec
) -> None:
    mirrored.hardware_seen(a100.cluster)
    make.grant(team_a, a100, units=4, kind=Grant.Kind.BOOST)
    GpuClass.objects.filter(pk=a100.pk).update(price_per_unit_hour="1.5")

    def look(**more: Any) -> str:
        return card(text(her.post("/teams/team-a/launch", typed(a100, look="units", **more))), a100.slug)

    assert (
        look(units=1) == "Uses 1 of 6 GPUs; 4 free now on one node; starts now 1 GPU-hour per hour, price 1.50 per hour"
    )
    assert look(units=3, run_hours=8) == (
        "Uses 3 of 6 GPUs; 4 free now on one node; starts now 3 GPUs for 8 h: 24 GPU-hours, price 36.00"
    )
    assert look(units=5).startswith("Not possible: 5 of A100 80GB whole card requested, but no node has more")
    assert look(units=9).startswith("Not possible: 9 units of A100 80GB whole card requested; the limit is 8")
    page = text(her.post("/teams/team-a/launch", typed(a100, look="units", units=2)))
    assert card(page, mi300x.slug).startswith("Not possible: 2 of MI300X requested; your team can use at most 1")

    for number in range(4):
        actions.launch("team-a", replace(job, name=f"w{number}", units=2 if number else 4), by=by_alice)
    Run.objects.filter(workload__name="w0").update(admitted_at=timezone.now())
    assert look(units=1).startswith("Your team's 6 GPUs are in use; waits behind 3 of your team until a workload of")
    # Notebooks have priority over jobs.
    assert "waits until a workload of your team ends" in look(units=1, kind="notebook", image="minimal")


def test_a_class_without_a_price_says_nothing_of_one(her: Client, a100: GpuClass) -> None:
    page = text(her.get("/teams/team-a/launch"))
    assert "price" not in card(page, a100.slug)
    GpuClass.objects.filter(pk=a100.pk).update(weight=0)
    assert "GPU-hour" not in card(text(her.get("/teams/team-a/launch")), a100.slug)


def test_a_slice_is_no_card_and_counts_as_its_part_of_one(her: Client, a100: GpuClass) -> None:
    said = card(text(her.get("/teams/team-a/launch")), a100.slug)
    assert "1 GPU-hour per hour" in said
    GpuClass.objects.filter(pk=a100.pk).update(partition="1g.10gb", weight="0.1429")
    said = card(text(her.get("/teams/team-a/launch?run_hours=7")), a100.slug)
    assert said.startswith("Uses 1 of 2 slices;")
    assert said.endswith("0.14 GPU-hours per hour (a slice counts as 1/7 GPU)")


def test_storage_is_nothing_to_run_on(her: Client, cluster: Cluster, team_a: Tenant) -> None:
    make.grant(team_a, make.storage(cluster), units=100)
    assert "Team storage" not in text(her.get("/teams/team-a/launch"))


# ---- objects to be created, and API equivalent -----------------------------------------------------------------------


def test_the_plan_is_what_the_launch_makes(her: Client, a100: GpuClass) -> None:
    chosen = typed(a100, kind="notebook", image="minimal", **ALL)
    page = text(her.post("/teams/team-a/launch", {**chosen, "look": "rest"}))
    assert (Workload.objects.count(), Run.objects.count(), Volume.objects.count()) == (0, 0, 0)
    planned = [yaml.safe_load(one) for one in re.findall(r'<pre class="raw" tabindex="0">(.*?)</pre>', page, re.DOTALL)]
    assert [one["kind"] for one in planned] == ["Job", "Secret", "PersistentVolumeClaim"]
    secret = planned[1]
    assert (secret["data"], secret["metadata"]["ownerReferences"][0]["uid"]) == ({"token": "left out"}, "left out")
    assert planned[2]["spec"]["resources"]["requests"] == {"storage": "20Gi"}

    assert her.post("/teams/team-a/launch", chosen).status_code == 302
    spec = RunSpec.from_json(Run.objects.get().spec)
    assert spec.identity
    assert planned[0] == manifests.job(replace(spec, owner="workloads.workload.numbered-at-launch", identity=""))
    # An existing volume is attached, not created.
    page = text(her.post("/teams/team-a/launch", {**chosen, "name": "again", "look": "rest"}))
    assert "PersistentVolumeClaim</b>" not in page


def test_devices_through_dra_are_part_of_the_plan(her: Client, cluster: Cluster, team_a: Tenant) -> None:
    dra = make.gpu_class(
        cluster, slug="dra", name="DRA", interface="dra", resource="dra.portal/a100", device_class="gpu.nvidia.com",
        device_selector="true", node_labels={},
    )  # fmt: skip
    make.grant(team_a, dra, units=2)
    page = text(her.post("/teams/team-a/launch", {**typed(dra), "look": "rest"}))
    assert "ResourceClaimTemplate</b>" in page


def test_the_plan_says_why_nothing_would_be_made(her: Client, a100: GpuClass) -> None:
    page = text(her.post("/teams/team-a/launch", {**typed(a100, cpu=99), "look": "rest"}))
    assert "Not possible: 99 cores requested" in page
    page = text(her.post("/teams/team-a/launch", {**typed(a100, name="No Name"), "look": "rest"}))
    assert "Not possible: Use lower-case letters" in page
    page = text(her.post("/teams/team-a/launch", {**typed(a100, env="broken"), "look": "rest"}))
    assert "Shown when all required fields are filled in." in page


def test_the_plan_knows_what_a_volume_allows(her: Client, a100: GpuClass, job: LaunchSpec, by_alice: Actor) -> None:
    def look(**more: Any) -> str:
        return text(
            her.post("/teams/team-a/launch", {**typed(a100, name="more", volume="data", **more), "look": "rest"})
        )

    actions.launch("team-a", replace(job, volume="data"), by=by_alice)
    assert "Not possible: The volume data is used by train, started by Alice on" in look()
    # A change of the workload that uses the volume ends that run first.
    changed = {**typed(a100, volume="data"), "look": "rest"}
    assert "Not possible" not in text(her.post("/teams/team-a/workloads/train/change", changed))
    Run.objects.update(ended_at=timezone.now(), outcome="stopped")
    assert "Not possible" not in look()
    Volume.objects.update(delete_requested_at=timezone.now())
    assert "Not possible: The volume data is marked for deletion on" in look()


def test_the_call_on_the_page_is_taken_by_the_api_and_makes_the_same(
    her: Client, a100: GpuClass, by_alice: Actor
) -> None:
    chosen = typed(a100, **{**ALL, "env": 'QUOTE=it\'s "so"\r\nDOLLAR=$HOME'}, command="sh -c 'echo 1'")
    page = text(her.post("/teams/team-a/launch", {**chosen, "look": "rest"}))
    shown = re.search(r'<pre class="raw" id="call" tabindex="0">(.*?)</pre>', page, re.DOTALL)
    assert shown
    words = shlex.split(shown[1])
    assert words[:3] == ["curl", "-X", "POST"]
    headers = dict(one.split(": ", 1) for flag, one in pairwise(words) if flag == "-H")
    address = urlsplit(next(word for word in words if word.startswith("http")))

    _row, secret = api_token_actions.create_token(name="ci", scopes=["read", "launch"], expires_in_days=1, by=by_alice)
    answer = Client().post(
        f"{address.path}?{address.query}",
        words[words.index("-d") + 1],
        content_type=headers["Content-Type"],
        headers={"Authorization": headers["Authorization"].replace("<token>", secret)},
    )
    assert answer.status_code == 201, answer.content
    by_call = Run.objects.get(workload__name="train").spec
    Run.objects.update(ended_at=timezone.now(), outcome="stopped")
    assert her.post("/teams/team-a/launch", {**chosen, "name": "by-form"}).status_code == 302
    by_form = Run.objects.get(workload__name="by-form").spec
    assert by_call["identity"] != by_form["identity"]
    own = {name: by_call[name] for name in ("workload", "owner", "identity")}
    assert by_call == {**by_form, **own}


def test_volumes_are_offered_with_size_and_user(her: Client, a100: GpuClass, job: LaunchSpec, by_alice: Actor) -> None:
    assert "Your team has no volumes yet." in text(her.get("/teams/team-a/launch?fresh=1"))
    actions.launch("team-a", replace(job, volume="data", volume_gib=2000), by=by_alice)
    page = text(her.get("/teams/team-a/launch?fresh=1"))
    assert '<option value="data">2,000 GiB, used by train</option>' in page
    assert "<b>data</b> (2,000 GiB, used by train)" in page
    Run.objects.update(ended_at=timezone.now(), outcome="stopped")
    assert "<b>data</b> (2,000 GiB, not in use)" in text(her.get("/teams/team-a/launch?fresh=1"))


def test_the_page_asks_as_often_whatever_the_team_has(
    her: Client, a100: GpuClass, job: LaunchSpec, by_alice: Actor
) -> None:
    def asked(**more: Any) -> int:
        with CaptureQueriesContext(connection) as seen:
            assert her.post("/teams/team-a/launch", typed(a100, look="units", **more)).status_code == 200
        return len(seen)

    actions.launch("team-a", replace(job, name="first", volume="data"), by=by_alice)
    before = asked()
    for number in range(3):
        actions.launch("team-a", replace(job, name=f"w{number}", volume=f"v{number}"), by=by_alice)
    assert asked() == before <= 27
