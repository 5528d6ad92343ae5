"""Images that a team gives by reference: accepted below its prefixes, refused elsewhere, and what the pod gets."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass, Image
from cluster.manifests import run as manifests
from cluster.manifests.run_spec import RunSpec
from portal.core.errors import Refused
from tenants.class_access.image_prefixes import actions as image_prefixe_actions
from tenants.models import ImagePrefix, Tenant
from workloads.core import queries as core_queries
from workloads.core import workload_sql
from workloads.launch import actions, restartable
from workloads.launch import queries as launch_queries
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Workload
from workloads.runs import restart
from workloads.status import queries, workload_row
from workloads.status.explain.container_start import RegistryAccess, waiting_container

pytestmark = pytest.mark.django_db
VISION = "registry.example.org/vision/"
TRAIN = "registry.example.org/vision/train:7"
WAY = "Choose an image from the catalog, or ask an operator to allow its prefix."


@pytest.fixture
def vision(granted: Tenant, olga: User) -> ImagePrefix:
    return image_prefixe_actions.allow_prefix("team-a", VISION, by=Actor(olga, via="page"))[0]


@pytest.fixture
def own(job: LaunchSpec) -> LaunchSpec:
    return replace(job, image=TRAIN)


@pytest.fixture
def her(granted: Tenant, alice: User, client: Client) -> Client:
    client.force_login(alice)
    return client


def end(name: str) -> None:
    Run.objects.filter(workload__name=name).update(ended_at=datetime(2026, 1, 1, tzinfo=UTC), outcome="stopped")


def ended() -> list[workload_row.WorkloadRow]:
    return queries.workload_rows(workload_sql.with_related(Workload.objects.all()))


# ---- actions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["job", "notebook"])
def test_an_image_below_a_prefix_is_launched_as_it_was_typed(
    vision: ImagePrefix, request: pytest.FixtureRequest, kind: str, by_bob: Actor
) -> None:
    workload = actions.launch("team-a", replace(request.getfixturevalue(kind), image=TRAIN), by=by_bob)
    assert (workload.image, workload.own_image) == (TRAIN, True)
    spec = RunSpec.from_json(Run.objects.get().spec)
    assert (spec.image, spec.registry) == (TRAIN, "registry.example.org")
    pod = manifests.job(spec)["spec"]["template"]["spec"]
    assert pod["imagePullSecrets"] == [{"name": f"{workload.name}-1-pull"}]
    assert pod["containers"][0]["imagePullPolicy"] == "Always"


def test_an_image_of_the_catalog_asks_no_registry_and_signs_in_nowhere(
    vision: ImagePrefix, job: LaunchSpec, by_bob: Actor
) -> None:
    Image.objects.create(name="shared", reference=f"{VISION}shared:1", kind="job")
    for number, image in enumerate(("python", "shared", f"{VISION}shared:1")):
        workload = actions.launch("team-a", replace(job, name=f"n{number}", image=image), by=by_bob)
        spec = RunSpec.from_json(Run.objects.get(workload=workload).spec)
        pod = manifests.job(spec)["spec"]["template"]["spec"]
        assert (workload.own_image, spec.registry, "imagePullSecrets" in pod) == (False, "", False)
        assert pod["containers"][0]["imagePullPolicy"] == "IfNotPresent"


@pytest.mark.parametrize(
    ("image", "code", "words"),
    [
        ("registry.example.org/visions/train", "image_not_allowed", f"Allowed prefixes: {VISION}. {WAY}"),
        ("registry.example.org:443/vision/train", "image_not_allowed", f"Allowed prefixes: {VISION}. {WAY}"),
        ("registry.example.org/vision/../theirs/train", "unknown_image", "'..' is not possible."),
        ("REGISTRY.example.org/vision/train", "unknown_image", "in lower case"),
        ("vision/train", "unknown_image", "'vision' is not possible. Allowed prefixes: "),
        ("train", "unknown_image", "Available: python."),
    ],
)
def test_what_is_not_below_one_is_refused_by_every_verb(
    vision: ImagePrefix, job: LaunchSpec, by_bob: Actor, image: str, code: str, words: str
) -> None:
    for verb in (actions.launch, actions.declare):
        with pytest.raises(Refused) as refused:
            verb("team-a", replace(job, image=image), by=by_bob)
        assert (refused.value.code, refused.value.refusal.field) == (code, "image")
        assert words in refused.value.refusal.message
    assert not Workload.objects.exists()


def test_the_prefix_of_another_team_allows_nothing(granted: Tenant, olga: User, own: LaunchSpec, by_bob: Actor) -> None:
    theirs = Tenant.objects.create(slug="team-b", name="Team B")
    ImagePrefix.objects.create(tenant=theirs, prefix=VISION)
    with pytest.raises(Refused, match="Your team has no allowed prefixes"):
        actions.launch("team-a", own, by=by_bob)


def restartable_by(by: Actor) -> set[str]:
    namespace, team = core_queries.team(by, "team-a")
    return restartable.restartable_names(by, namespace, team, ended(), launch_queries.reachable_classes(namespace))


def test_a_prefix_that_is_taken_away_stops_nothing_and_starts_nothing(
    vision: ImagePrefix, own: LaunchSpec, by_bob: Actor, by_alice: Actor, olga: User
) -> None:
    actions.launch("team-a", own, by=by_bob)
    image_prefixe_actions.disallow_prefix("team-a", vision.pk, by=Actor(olga, via="page"))
    run = Run.objects.get()
    assert (run.stop_requested_at, run.spec["registry"]) == (None, "registry.example.org")

    end("train")
    assert restartable_by(by_bob) == set()
    with pytest.raises(Refused) as refused:
        actions.start("team-a", "train", by=by_bob)
    assert (refused.value.code, refused.value.refusal.field) == ("image_not_allowed", "image")
    image_prefixe_actions.allow_prefix("team-a", VISION, by=Actor(olga, via="page"))
    assert restartable_by(by_bob) == {"train"}
    assert actions.start("team-a", "train", by=by_bob).number == 2


def test_the_buttons_say_so_before_they_are_pressed(
    vision: ImagePrefix, own: LaunchSpec, by_bob: Actor, bob: User, client: Client
) -> None:
    actions.launch("team-a", own, by=by_bob)
    ImagePrefix.objects.all().delete()
    with pytest.raises(Refused, match="does not match an allowed prefix"):
        restart.restart("team-a", "train", by=by_bob)
    assert Run.objects.get().stop_requested_at is None
    end("train")
    client.force_login(bob)
    shown = client.get("/teams/team-a/workloads/train")
    assert shown.context["actions"]["start"].code == "image_not_allowed"
    assert "/workloads/train/start" not in shown.content.decode()


def test_another_image_of_the_catalog_is_not_the_teams_own_any_more(
    vision: ImagePrefix, own: LaunchSpec, job: LaunchSpec, by_bob: Actor
) -> None:
    actions.declare("team-a", own, by=by_bob)
    workload, _ = actions.declare("team-a", job, by=by_bob)
    workload.refresh_from_db()
    assert (workload.own_image, workload.image) == (False, "docker.io/library/python:3.14-slim")
    workload, _ = actions.declare("team-a", own, by=by_bob)
    assert Workload.objects.get().own_image
    changes = Event.objects.filter(verb="workload.changed").order_by("id")
    assert [one.after["image"] for one in changes] == ["docker.io/library/python:3.14-slim", TRAIN]


def test_a_launch_costs_one_query_more(
    vision: ImagePrefix, own: LaunchSpec, job: LaunchSpec, by_bob: Actor, django_assert_num_queries: Any
) -> None:
    actions.launch("team-a", replace(job, name="warm"), by=by_bob)
    with django_assert_num_queries(7) as plain:
        actions.launch("team-a", replace(job, name="first"), by=by_bob)
    with django_assert_num_queries(len(plain) + 1):
        actions.launch("team-a", own, by=by_bob)


# ---- pages and API ---------------------------------------------------------------------------------------------------


def typed(a100: GpuClass, **more: Any) -> dict[str, Any]:
    return {"kind": "job", "name": "train", "gpu_class": a100.slug, "units": 1, "image": "python", **more}


def test_the_form_takes_a_reference_instead_and_says_what_is_unknown(
    her: Client, vision: ImagePrefix, a100: GpuClass, images: list[Image]
) -> None:
    launch = "/teams/team-a/launch"
    shown = her.get(f"{launch}?kind=job").content.decode()
    assert f">{VISION}</code>" in shown
    assert f"it is unknown whether they run on {a100.name}." in shown
    assert "and whether they contain JupyterLab" in her.get(launch).content.decode()

    looked = her.post(launch, typed(a100, image_reference=TRAIN, look="rest")).content.decode()
    assert "train-1-pull" in looked
    assert "kubernetes.io/dockerconfigjson" in looked
    assert her.post(launch, typed(a100, image="", image_reference=TRAIN)).status_code == 302
    assert Workload.objects.get().image == TRAIN
    page = her.get("/teams/team-a/workloads/train").content.decode()
    assert f"Not in the catalog: whether it runs on {a100.name} is unknown." in page

    again = her.get(f"{launch}?like=train")
    assert again.context["form"]["image_reference"].value() == TRAIN
    change = her.get("/teams/team-a/workloads/train/change")
    assert change.context["form"]["image_reference"].value() == TRAIN


def test_the_form_refuses_beside_what_was_typed(
    her: Client, vision: ImagePrefix, a100: GpuClass, images: list[Image]
) -> None:
    answer = her.post("/teams/team-a/launch", typed(a100, image_reference="ghcr.io/a/b"))
    assert answer.status_code == 422
    [error] = answer.context["form"].errors["image_reference"]
    assert error.startswith("ghcr.io/a/b is not in the catalog")
    assert "image" not in answer.context["form"].errors
    missing = her.post("/teams/team-a/launch", typed(a100, image=""))
    assert "image" in missing.context["form"].errors


def test_without_a_prefix_the_form_does_not_ask(her: Client, a100: GpuClass, images: list[Image]) -> None:
    assert "image_reference" not in her.get("/teams/team-a/launch").content.decode()


def test_a_link_fills_it_in_for_teams_that_may(
    her: Client, vision: ImagePrefix, a100: GpuClass, images: list[Image]
) -> None:
    followed = her.get(f"/teams/team-a/launch?kind=job&image={TRAIN}")
    assert followed.context["form"]["image_reference"].value() == TRAIN
    assert followed.context["said"] == []
    assert "image=registry.example.org%2Fvision%2Ftrain%3A7" in followed.context["share"].link
    elsewhere = her.get("/teams/team-a/launch?kind=job&image=ghcr.io/a/b")
    assert not elsewhere.context["form"]["image_reference"].value()
    assert "The catalog has no image 'ghcr.io/a/b'" in elsewhere.context["said"][0]


def test_the_api_takes_it_and_says_that_nothing_is_known(
    her: Client, vision: ImagePrefix, own: LaunchSpec, a100: GpuClass
) -> None:
    body = {"name": "train", "kind": "job", "gpu_class": own.gpu_class, "image": TRAIN}
    made = her.post("/api/v1/workloads", body, content_type="application/json")
    assert (made.status_code, made.json()["image"]) == (201, TRAIN)
    assert made.json()["image_note"] == f"Not in the catalog: whether it runs on {a100.name} is unknown."
    refused = her.post(
        "/api/v1/workloads", {**body, "name": "x", "image": "ghcr.io/a/b"}, content_type="application/json"
    )
    assert (refused.status_code, refused.json()["code"], refused.json()["field"]) == (422, "image_not_allowed", "image")
    plain = her.post("/api/v1/workloads", {**body, "name": "y", "image": "python"}, content_type="application/json")
    assert plain.json()["image_note"] == ""


# ---- reasons of pull errors ------------------------------------------------------------------------------------------


DENIED = "failed to resolve reference: pull access denied, repository does not exist or may require authorization"


@pytest.mark.parametrize(
    ("sign_in", "message", "reason", "words"),
    [
        (
            RegistryAccess("registry.example.org", False),
            DENIED,
            "no_credentials",
            "the team has no credentials for it",
        ),
        (
            RegistryAccess("registry.example.org", True),
            DENIED,
            "credentials_refused",
            "with the team's credentials",
        ),
        (None, DENIED, "image_not_allowed", "it requires authentication"),
        (RegistryAccess("registry.example.org", False), "manifest unknown", "image_not_found", "was not found"),
        (RegistryAccess("registry.example.org", True), "i/o timeout", "registry_unavailable", "does not respond"),
    ],
)
def test_a_refused_pull_says_whether_the_team_signs_in(
    sign_in: RegistryAccess | None, message: str, reason: str, words: str
) -> None:
    found = waiting_container("ErrImagePull", message, image=TRAIN, node="n1", sign_in=sign_in)
    assert found is not None
    assert (found.reason, words in found.sentence) == (reason, True)
    assert found.raw == f"ErrImagePull: {message}"
