"""A team's registry credentials: who may manage them, what is visible of them, and what a run receives."""

from __future__ import annotations

import base64
import json
import logging
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from django.core import mail
from django.test import Client
from nacl.encoding import Base64Encoder
from nacl.public import PrivateKey

from accounts.core.actor import Actor
from accounts.models import Event, Scope, User
from catalog.models import GpuClass, Image
from cluster.manifests import run as manifests
from cluster.manifests.run_spec import RunSpec
from portal.core.errors import Refused
from tenants.class_access.image_prefixes import actions as image_prefixe_actions
from tenants.models import ImagePrefix, Membership, Namespace, Tenant
from tests.support.http.callers import bearer
from tests.workloads.credentials.database import everything_in_the_database
from workloads.credentials.registries import actions as registry_actions
from workloads.credentials.registries import policy as registry_policy
from workloads.credentials.registries.actions import RegistryLogin
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import RegistryCredential, Run, Workload

CANARY = "canary-9b1d-do-not-show"
REGISTRIES = "/api/v1/registries"
HOST = "registry.example.org"
VISION = f"{HOST}/vision/"
TRAIN = f"{VISION}train:7"
ROBOT = RegistryLogin("robot$vision", CANARY)
needs_rows = pytest.mark.django_db


@pytest.fixture
def vision(granted: Tenant, olga: User) -> ImagePrefix:
    return image_prefixe_actions.allow_prefix("team-a", VISION, by=Actor(olga, via="page"))[0]


@pytest.fixture
def own(job: LaunchSpec) -> LaunchSpec:
    return replace(job, image=TRAIN)


def kept() -> RegistryLogin | None:
    return registry_actions.unseal_login(bytes(RegistryCredential.objects.get().sealed))


# ---- valid values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("username", "password", "code"),
    [
        ("robot$vision", "x", None),
        ("_json_key", '{\n  "type": "service_account"\n}', None),
        ("", "x", "bad_username"),
        ("a:b", "x", "bad_username"),
        ("a\nb", "x", "bad_username"),
        ("a" * 201, "x", "bad_username"),
        ("a", "", "bad_password"),
        ("a", "x\0", "bad_password"),
        ("a", "ü" * 8193, "bad_password"),
    ],
)
def test_what_may_be_kept(username: str, password: str, code: str | None) -> None:
    found = registry_policy.login_refusal(username, password)
    assert (found.code if found else None) == code


# ---- actions ---------------------------------------------------------------------------------------------------------


@needs_rows
def test_put_replace_and_delete_with_one_event_each(vision: ImagePrefix, by_alice: Actor) -> None:
    row, is_new = registry_actions.put_login("team-a", HOST, ROBOT, by=by_alice)
    assert (is_new, row.created_by, kept()) == (True, by_alice.user, ROBOT)
    again, is_new = registry_actions.put_login("team-a", HOST, RegistryLogin("other", "word"), by=by_alice)
    assert (is_new, again.pk, kept()) == (False, row.pk, RegistryLogin("other", "word"))
    registry_actions.delete_login("team-a", HOST, by=by_alice)
    assert not RegistryCredential.objects.exists()
    events = Event.objects.filter(verb__startswith="registry.").order_by("id")
    assert [(one.verb, one.name, one.before, one.after) for one in events] == [
        ("registry.put", HOST, {}, {"registry": HOST}),
        ("registry.replaced", HOST, {}, {"registry": HOST}),
        ("registry.deleted", HOST, {"registry": HOST}, {}),
    ]


@needs_rows
def test_only_owners_and_managers_keep_them(
    vision: ImagePrefix, by_alice: Actor, by_bob: Actor, by_charlie: Actor, olga: User
) -> None:
    registry_actions.put_login("team-a", HOST, ROBOT, by=by_alice)
    for by, code in ((by_bob, "not_allowed"), (Actor(olga, via="page"), "not_allowed"), (by_charlie, "not_found")):
        with pytest.raises(Refused) as put:
            registry_actions.put_login("team-a", HOST, RegistryLogin("a", "b"), by=by)
        with pytest.raises(Refused) as deleted:
            registry_actions.delete_login("team-a", HOST, by=by)
        assert (put.value.code, deleted.value.code) == (code, code)
    assert kept() == ROBOT
    Membership.objects.filter(user=by_bob.user).update(role="manager")
    registry_actions.put_login("team-a", HOST, RegistryLogin("a", "b"), by=by_bob)


@needs_rows
def test_only_for_registries_of_the_teams_prefixes(vision: ImagePrefix, by_alice: Actor) -> None:
    for host in ("ghcr.io", f"{HOST}:443", HOST.upper(), ""):
        with pytest.raises(Refused) as refused:
            registry_actions.put_login("team-a", host, ROBOT, by=by_alice)
        assert (refused.value.code, refused.value.refusal.field) == ("unknown_registry", "registry")
        assert f"Allowed registries: {HOST}. Contact an operator" in refused.value.refusal.message
    ImagePrefix.objects.all().delete()
    with pytest.raises(Refused, match="No registry is allowed yet"):
        registry_actions.put_login("team-a", HOST, ROBOT, by=by_alice)


@needs_rows
def test_what_is_left_without_a_prefix_can_be_deleted(
    vision: ImagePrefix, namespace_a: Namespace, by_alice: Actor
) -> None:
    registry_actions.put_login("team-a", HOST, ROBOT, by=by_alice)
    ImagePrefix.objects.all().delete()
    Namespace.objects.update(wanted=Namespace.Wanted.SUSPENDED)
    registry_actions.delete_login("team-a", HOST, by=by_alice)
    assert not RegistryCredential.objects.exists()


@needs_rows
def test_what_runs_or_waits_with_it_is_looked_at_again(
    vision: ImagePrefix, own: LaunchSpec, job: LaunchSpec, by_alice: Actor
) -> None:
    actions.launch("team-a", own, by=by_alice)
    actions.launch("team-a", replace(job, name="other"), by=by_alice)
    for verb in (
        lambda: registry_actions.put_login("team-a", HOST, ROBOT, by=by_alice),
        lambda: registry_actions.delete_login("team-a", HOST, by=by_alice),
    ):
        Workload.objects.update(due_at=None)
        verb()
        assert [one.name for one in Workload.objects.exclude(due_at=None)] == ["train"]


# ---- the pull Secret of a run ----------------------------------------------------------------------------------------


def spec_of(wanted: LaunchSpec, by: Actor) -> RunSpec:
    actions.launch("team-a", wanted, by=by)
    return RunSpec.from_json(Run.objects.get().spec)


@needs_rows
def test_the_secret_is_for_this_registry_alone_and_goes_with_the_job(
    vision: ImagePrefix, own: LaunchSpec, by_alice: Actor
) -> None:
    spec = spec_of(own, by_alice)
    made = manifests.pull_secret(spec, username="robot", password="word", job_uid="7")
    assert (made["type"], made["metadata"]["name"]) == ("kubernetes.io/dockerconfigjson", "train-1-pull")
    assert made["metadata"]["ownerReferences"] == [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "train-1", "uid": "7"}
    ]
    config = json.loads(base64.b64decode(made["data"][".dockerconfigjson"]))
    auth = base64.b64encode(b"robot:word").decode()
    assert config == {"auths": {HOST: {"username": "robot", "password": "word", "auth": auth}}}

    hub = manifests.pull_secret(replace(spec, registry="docker.io"), username="a", password="b", job_uid="7")
    config = json.loads(base64.b64decode(hub["data"][".dockerconfigjson"]))
    assert list(config["auths"]) == ["https://index.docker.io/v1/"]


def test_what_is_sealed_is_opened_by_the_other_half_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = registry_actions.seal_login(ROBOT)
    assert CANARY.encode() not in sealed
    assert b"robot" not in sealed
    assert registry_actions.unseal_login(sealed) == ROBOT
    monkeypatch.setattr(settings, "SECRETS_PRIVATE_KEY", PrivateKey.generate().encode(Base64Encoder).decode())
    assert registry_actions.unseal_login(sealed) is None


# ---- pages and API ---------------------------------------------------------------------------------------------------


@pytest.fixture
def her(granted: Tenant, alice: User, client: Client) -> Client:
    client.force_login(alice)
    return client


@needs_rows
def test_the_page_keeps_replaces_shows_and_deletes(
    her: Client, vision: ImagePrefix, own: LaunchSpec, by_alice: Actor, django_assert_num_queries: Any
) -> None:
    address = "/teams/team-a/images"
    actions.declare("team-a", own, by=by_alice)
    assert "no credentials: public images only" in her.get(address).content.decode()
    typed = {"registry": HOST, "username": ROBOT.username, "password": CANARY}
    assert her.post(f"{address}/registries", typed).status_code == 302
    shown = her.get(address).content.decode()
    assert f"The credentials for {HOST} were saved." in shown
    assert shown.count("used by train") == 2
    assert "no credentials:" not in shown
    assert 'type="password"' in shown
    assert CANARY not in shown
    assert ROBOT.username not in shown
    assert "Allow a prefix" not in shown
    with django_assert_num_queries(7):
        her.get(address)

    refused = her.post(f"{address}/registries", {**typed, "registry": "ghcr.io"})
    assert refused.status_code == 422
    assert "No prefix of &#x27;ghcr.io&#x27; is allowed" in refused.content.decode()
    assert CANARY not in refused.content.decode()
    assert her.post(f"{address}/registries/{HOST}/delete").status_code == 302
    assert not RegistryCredential.objects.exists()


@needs_rows
def test_operators_allow_and_take_away_on_the_same_page(
    vision: ImagePrefix, own: LaunchSpec, by_bob: Actor, olga: User, client: Client
) -> None:
    actions.declare("team-a", own, by=by_bob)
    client.force_login(olga)
    address = "/teams/team-a/images"
    shown = client.get(address).content.decode()
    assert "train cannot be started again" in shown
    assert ">Save</button>" not in shown
    assert client.post(f"{address}/prefixes", {"prefix": "ghcr.io/a"}).status_code == 302
    assert "ghcr.io/a/ is allowed." in client.get(address).content.decode()
    refused = client.post(f"{address}/prefixes", {"prefix": "GHCR.io/a"})
    assert (refused.status_code, "in lower case" in refused.content.decode()) == (422, True)
    assert client.post(f"{address}/prefixes/{vision.pk}/end").status_code == 302
    assert [one.prefix for one in ImagePrefix.objects.all()] == ["ghcr.io/a/"]


@needs_rows
def test_a_member_looks_on_and_a_stranger_is_told_nothing(
    vision: ImagePrefix, by_alice: Actor, bob: User, charlie: User, client: Client
) -> None:
    registry_actions.put_login("team-a", HOST, ROBOT, by=by_alice)
    address = "/teams/team-a/images"
    posts = (f"{address}/prefixes", f"{address}/prefixes/{vision.pk}/end", f"{address}/registries/{HOST}/delete")
    client.force_login(bob)
    shown = client.get(address).content.decode()
    assert HOST in shown
    for words in (">Save</button>", "Delete permanently", "<summary>Remove<", "Allow a prefix"):
        assert words not in shown
    assert [client.post(one, {"prefix": "ghcr.io/a"}).status_code for one in posts] == [403, 403, 403]
    client.force_login(charlie)
    assert client.get(address).status_code == 404
    assert [client.post(one).status_code for one in (*posts, f"{address}/registries")] == [404] * 4
    for method in ("get", "put", "delete"):
        path = REGISTRIES if method == "get" else f"{REGISTRIES}/{HOST}"
        answer = getattr(client, method)(f"{path}?team=team-a", content_type="application/json")
        assert answer.status_code == 404


@needs_rows
def test_without_a_key_the_page_says_so_and_public_images_run(
    her: Client, vision: ImagePrefix, own: LaunchSpec, by_alice: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "SECRETS_PUBLIC_KEY", "")
    shown = her.get("/teams/team-a/images").content.decode()
    assert "This portal cannot store secrets" in shown
    assert ">Save</button>" not in shown
    with pytest.raises(Refused, match="This portal cannot store secrets"):
        registry_actions.put_login("team-a", HOST, ROBOT, by=by_alice)
    actions.launch("team-a", own, by=by_alice)


@needs_rows
def test_the_api_puts_lists_in_pages_and_deletes(
    vision: ImagePrefix, own: LaunchSpec, alice: User, bob: User, by_alice: Actor, client: Client
) -> None:
    ImagePrefix.objects.create(tenant=vision.tenant, prefix="ghcr.io/a/")
    actions.declare("team-a", own, by=by_alice)
    headers = bearer(alice, Scope.READ, Scope.ADMIN)

    def put(host: str, body: dict[str, Any]) -> Any:
        return client.put(f"{REGISTRIES}/{host}", body, content_type="application/json", headers=headers)

    body = {"username": "_json_key", "password": f"{{\n{CANARY}\n}}"}
    made = put(HOST, body)
    assert (made.status_code, set(made.json())) == (201, {"registry", "by", "updated_at", "used_by", "is_allowed"})
    assert kept() == RegistryLogin(**body)
    assert put(HOST, body).status_code == 200
    assert put("ghcr.io", body).status_code == 201
    bad = [
        ({"username": "a"}, "invalid"),
        ({**body, "x": CANARY}, "unknown_field"),
        ({**body, "username": f"{CANARY}:"}, "bad_username"),
        ({**body, "password": CANARY * 1000}, "bad_password"),
    ]
    for sent, code in bad:
        refused = put(HOST, sent)
        assert (refused.status_code, refused.json()["code"]) == (422, code)
        assert CANARY not in refused.content.decode()
    assert put("quay.io", body).json()["code"] == "unknown_registry"

    first = client.get(f"{REGISTRIES}?limit=1", headers=headers)
    second = client.get(first.json()["next"], headers=headers)
    found = [*first.json()["items"], *second.json()["items"]]
    assert [(one["registry"], one["used_by"], one["is_allowed"]) for one in found] == [
        ("ghcr.io", [], True),
        (HOST, ["train"], True),
    ]
    assert second.json()["next"] is None
    assert CANARY not in first.content.decode() + second.content.decode()
    assert client.delete(f"{REGISTRIES}/{HOST}", headers=bearer(alice, Scope.READ, Scope.LAUNCH)).status_code == 403
    assert client.delete(f"{REGISTRIES}/{HOST}", headers=headers).status_code == 204
    assert client.delete(f"{REGISTRIES}/{HOST}", headers=headers).status_code == 404
    assert client.get(REGISTRIES, headers=bearer(bob, Scope.READ)).status_code == 200


@needs_rows
def test_the_list_costs_the_same_however_long_it_is(
    her: Client, vision: ImagePrefix, by_alice: Actor, django_assert_num_queries: Any
) -> None:
    for number in range(3):
        ImagePrefix.objects.create(tenant=vision.tenant, prefix=f"r{number}.example.org/a/")
        registry_actions.put_login("team-a", f"r{number}.example.org", ROBOT, by=by_alice)
    with django_assert_num_queries(7):
        her.get(REGISTRIES)


@needs_rows
def test_the_password_is_nowhere_but_sealed(
    her: Client,
    vision: ImagePrefix,
    own: LaunchSpec,
    a100: GpuClass,
    images: list[Image],
    by_alice: Actor,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        typed = {"registry": HOST, "username": ROBOT.username, "password": CANARY}
        her.post("/teams/team-a/images/registries", typed)
        her.post("/teams/team-a/images/registries", {**typed, "registry": "ghcr.io"})
        her.put(
            f"{REGISTRIES}/{HOST}", {"username": ROBOT.username, "password": CANARY}, content_type="application/json"
        )
        actions.launch("team-a", own, by=by_alice)
        pages = ("images", "launch", "launch?like=train", "history", "workloads", "workloads/train", "members")
        for address in pages:
            shown = her.get(f"/teams/team-a/{address}").content.decode()
            assert CANARY not in shown, address
            assert ROBOT.username not in shown, address
        for address in (REGISTRIES, "/api/v1/events?team=team-a", "/api/v1/workloads", "/api/v1/workloads/train"):
            assert CANARY not in her.get(address).content.decode(), address

    # bytea columns are hexadecimal in this text.
    found = everything_in_the_database()
    assert HOST in found
    both = base64.b64encode(f"{ROBOT.username}:{CANARY}".encode()).decode()
    for text in (CANARY, CANARY.encode().hex(), both, ROBOT.username, ROBOT.username.encode().hex()):
        assert text not in found
    assert CANARY not in json.dumps([one.body for one in mail.outbox])
    said = capfd.readouterr()
    assert CANARY not in said.out + said.err + caplog.text
