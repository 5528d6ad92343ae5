"""A team's sealed secrets: who may manage them, what is visible of them, and how a run receives them."""

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

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass, Image
from cluster.manifests import run as manifests
from cluster.manifests.run_spec import RunSpec
from cluster.models import Cluster
from portal.core.errors import Refused
from tenants.models import Membership, Namespace, Tenant
from tests.support.rows import make
from tests.workloads.credentials.database import everything_in_the_database
from workloads.credentials import sealing
from workloads.credentials.secrets import actions as secret_actions
from workloads.credentials.secrets import policy as secret_policy
from workloads.credentials.secrets import queries as secret_queries
from workloads.credentials.secrets.models import TeamSecret
from workloads.launch import actions
from workloads.launch import spec as launch_spec
from workloads.launch.options import OptionBounds, Options, options_refusal
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Workload
from workloads.runs.objects import run_secret

CANARY = "canary-7f3a-do-not-show"
SECRETS = "/api/v1/secrets"
needs_rows = pytest.mark.django_db


# ---- valid values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [
        ({"secrets": ["WANDB_API_KEY"]}, None, ""),
        ({"secrets": ["A-B"]}, "bad_variable", "'A-B' is not valid"),
        ({"secrets": ["LD_PRELOAD"]}, "forbidden_variable", "LD_PRELOAD is reserved"),
        ({"secrets": ["JUPYTER_TOKEN"]}, "forbidden_variable", ""),
        ({"secrets": ["A"], "env": {"A": "x"}}, "twice", "A is both a variable and a secret"),
        ({"secrets": [f"S{n}" for n in range(21)]}, "too_many_secrets", "21 secrets; the limit is 20"),
    ],
)
def test_what_may_be_chosen(said: dict[str, Any], code: str | None, words: str) -> None:
    found = options_refusal(Options.from_json(said), OptionBounds("A100", 1, cpu=4, memory_gib=16), has_volume=False)
    assert (found.code, found.field) == (code, "secrets") if found else code is None
    assert words in (found.message if found else "")


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("KEY", "x", None),
        ("KEY", "ü" * 8192, None),
        ("KEY", "ü" * 8192 + "x", "bad_value"),
        ("KEY", "", "bad_value"),
        ("KEY", "a\0b", "bad_value"),
        ("1KEY", "x", "bad_variable"),
        ("NVIDIA_VISIBLE_DEVICES", "x", "forbidden_variable"),
    ],
)
def test_what_may_be_kept(name: str, value: str, code: str | None) -> None:
    found = secret_policy.secret_refusal(name, value)
    assert (found.code if found else None) == code
    assert not (found and value and value in found.message and len(value) > 1)


def test_what_is_sealed_is_opened_by_the_other_half_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = sealing.seal(CANARY)
    assert CANARY.encode() not in sealed
    assert sealed != sealing.seal(CANARY)
    assert sealing.unseal(sealed) == CANARY
    monkeypatch.setattr(settings, "SECRETS_PRIVATE_KEY", PrivateKey.generate().encode(Base64Encoder).decode())
    assert sealing.unseal(sealed) is None
    monkeypatch.setattr(settings, "SECRETS_PRIVATE_KEY", "")
    assert sealing.unseal(sealed) is None


def test_options_and_specs_keep_the_names() -> None:
    said = {"secrets": ["A", "B"]}
    assert Options.from_json({"secrets": ["B", "A", "A"]}).to_json() == said
    assert Options.from_json(said).secrets == ("A", "B")


# ---- actions ---------------------------------------------------------------------------------------------------------


@needs_rows
def test_put_replace_and_delete(granted: Tenant, namespace_a: Namespace, by_alice: Actor, by_bob: Actor) -> None:
    row, is_new = secret_actions.put_secret("team-a", "KEY", "one", by=by_alice)
    assert (is_new, row.created_by) == (True, by_alice.user)
    again, is_new = secret_actions.put_secret("team-a", "KEY", "two", by=by_bob)
    assert (is_new, again.pk, again.created_by) == (False, row.pk, by_bob.user)
    assert again.updated_at > row.updated_at
    assert sealing.unseal(bytes(TeamSecret.objects.get().sealed)) == "two"

    secret_actions.delete_secret("team-a", "KEY", by=by_bob)
    assert not TeamSecret.objects.exists()
    events = Event.objects.filter(verb__startswith="secret.").order_by("id")
    assert [(one.verb, one.before, one.after) for one in events] == [
        ("secret.put", {}, {"name": "KEY"}),
        ("secret.replaced", {}, {"name": "KEY"}),
        ("secret.deleted", {"name": "KEY"}, {}),
    ]


@needs_rows
def test_only_who_may_launch_keeps_them(granted: Tenant, by_alice: Actor, bob: User, by_charlie: Actor) -> None:
    Membership.objects.filter(tenant=granted, user=bob).update(role="viewer")
    secret_actions.put_secret("team-a", "KEY", "one", by=by_alice)
    for by, code in ((Actor(bob, via="page"), "not_allowed"), (by_charlie, "not_found")):
        with pytest.raises(Refused) as put:
            secret_actions.put_secret("team-a", "KEY", "two", by=by)
        with pytest.raises(Refused) as deleted:
            secret_actions.delete_secret("team-a", "KEY", by=by)
        assert (put.value.code, deleted.value.code) == (code, code)
    assert sealing.unseal(bytes(TeamSecret.objects.get().sealed)) == "one"


@needs_rows
def test_a_team_keeps_a_hundred(granted: Tenant, by_alice: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_policy, "SECRETS_LIMIT", 1)
    secret_actions.put_secret("team-a", "KEY", "one", by=by_alice)
    secret_actions.put_secret("team-a", "KEY", "two", by=by_alice)
    with pytest.raises(Refused, match="has 1 secrets; the limit is 1"):
        secret_actions.put_secret("team-a", "OTHER", "one", by=by_alice)


@needs_rows
def test_what_a_run_waits_for_is_not_deleted(granted: Tenant, job: LaunchSpec, by_alice: Actor) -> None:
    secret_actions.put_secret("team-a", "KEY", "one", by=by_alice)
    secret_actions.put_secret("team-a", "OTHER", "one", by=by_alice)
    actions.launch("team-a", replace(job, options=Options(secrets=("KEY",))), by=by_alice)
    with pytest.raises(Refused, match=r"Queued or running workloads use KEY: train"):
        secret_actions.delete_secret("team-a", "KEY", by=by_alice)
    secret_actions.delete_secret("team-a", "OTHER", by=by_alice)
    secret_actions.put_secret("team-a", "KEY", "two", by=by_alice)


@needs_rows
def test_what_the_team_does_not_keep_is_refused_at_launch_declaration_and_start(
    granted: Tenant, job: LaunchSpec, by_alice: Actor
) -> None:
    wanted = replace(job, options=Options(secrets=("KEY",)))
    for verb in (actions.launch, actions.declare):
        with pytest.raises(Refused) as refused:
            verb("team-a", wanted, by=by_alice)
        assert refused.value.refusal.body() == {
            "code": "unknown_secret",
            "message": "The team has no secret KEY. Add it on the team's Secrets page, or remove it here.",
            "field": "secrets",
        }
    secret_actions.put_secret("team-a", "KEY", "one", by=by_alice)
    actions.declare("team-a", wanted, by=by_alice)
    secret_actions.delete_secret("team-a", "KEY", by=by_alice)
    with pytest.raises(Refused, match="has no secret KEY"):
        actions.start("team-a", "train", by=by_alice)


@needs_rows
def test_those_of_another_team_are_unknown(granted: Tenant, cluster: Cluster, job: LaunchSpec, by_alice: Actor) -> None:
    theirs = make.tenant(cluster, slug="team-b").namespaces.get()
    TeamSecret.objects.create(namespace=theirs, name="KEY", sealed=sealing.seal(CANARY), created_by=by_alice.person)
    with pytest.raises(Refused, match="has no secret KEY"):
        actions.launch("team-a", replace(job, options=Options(secrets=("KEY",))), by=by_alice)


# ---- the Secret of a run ---------------------------------------------------------------------------------------------


def launched(wanted: LaunchSpec, by: Actor) -> tuple[Workload, Run, RunSpec]:
    workload = actions.launch("team-a", wanted, by=by)
    run = Run.objects.get(workload=workload)
    return workload, run, RunSpec.from_json(run.spec)


@needs_rows
@pytest.mark.parametrize("kind", ["job", "notebook"])
def test_the_run_reads_them_from_its_own_secret(
    granted: Tenant, request: pytest.FixtureRequest, kind: str, by_alice: Actor
) -> None:
    secret_actions.put_secret("team-a", "token", CANARY, by=by_alice)
    said = Options(secrets=("token",), repository="https://github.com/owner/name")
    workload, run, spec = launched(replace(request.getfixturevalue(kind), options=said), by_alice)

    job = manifests.job(spec)
    pod = job["spec"]["template"]["spec"]
    reference = {"secretKeyRef": {"name": manifests.job_name(spec), "key": "secret.token"}}
    assert {"name": "token", "valueFrom": reference} in pod["containers"][0]["env"]
    assert "token" not in [one["name"] for one in pod["initContainers"][0]["env"]]
    made = run_secret.run_secret_manifest(workload, run, spec, job_uid="1")
    assert made is not None
    opened = {key: base64.b64decode(value).decode() for key, value in made["data"].items()}
    assert opened["secret.token"] == CANARY
    assert ("token" in opened) == (kind == "notebook")
    assert made["metadata"]["ownerReferences"][0]["uid"] == "1"


@needs_rows
def test_a_run_without_chosen_ones_gets_none(granted: Tenant, job: LaunchSpec, by_alice: Actor) -> None:
    secret_actions.put_secret("team-a", "KEY", CANARY, by=by_alice)
    _workload, _run, spec = launched(job, by_alice)
    assert not launch_spec.needs_secret(spec)
    [container] = manifests.job(spec)["spec"]["template"]["spec"]["containers"]
    assert container["env"] == [{"name": "HOME", "value": "/home/work"}]


@needs_rows
def test_without_the_key_nothing_is_given_and_the_log_says_which(
    granted: Tenant, job: LaunchSpec, by_alice: Actor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    secret_actions.put_secret("team-a", "KEY", CANARY, by=by_alice)
    workload, run, spec = launched(replace(job, options=Options(secrets=("KEY",))), by_alice)
    monkeypatch.setattr(settings, "SECRETS_PRIVATE_KEY", "")
    with caplog.at_level(logging.ERROR):
        assert run_secret.run_secret_manifest(workload, run, spec, job_uid="1") is None
    assert "KEY" in caplog.text


# ---- pages and API ---------------------------------------------------------------------------------------------------


@pytest.fixture
def her(granted: Tenant, alice: User, client: Client) -> Client:
    client.force_login(alice)
    return client


@needs_rows
def test_the_page_keeps_replaces_shows_and_deletes(
    her: Client, job: LaunchSpec, by_alice: Actor, django_assert_num_queries: Any
) -> None:
    address = "/teams/team-a/secrets"
    assert her.post(address, {"name": "KEY", "value": CANARY}).status_code == 302
    actions.declare("team-a", replace(job, options=Options(secrets=("KEY",))), by=by_alice)
    shown = her.get(address).content.decode()
    assert "KEY was saved." in shown
    assert "used by train" in shown
    assert 'type="password"' in shown
    assert 'autocomplete="off"' in shown
    assert CANARY not in shown
    with django_assert_num_queries(6):
        her.get(address)

    refused = her.post(address, {"name": "LD_PRELOAD", "value": CANARY})
    assert refused.status_code == 422
    assert "LD_PRELOAD is reserved" in refused.content.decode()
    assert CANARY not in refused.content.decode()

    assert her.post(f"{address}/KEY/delete").status_code == 302
    assert not TeamSecret.objects.exists()


@needs_rows
def test_a_viewer_looks_on(granted: Tenant, bob: User, by_alice: Actor, client: Client) -> None:
    secret_actions.put_secret("team-a", "KEY", CANARY, by=by_alice)
    Membership.objects.filter(tenant=granted, user=bob).update(role="viewer")
    client.force_login(bob)
    shown = client.get("/teams/team-a/secrets").content.decode()
    assert "KEY" in shown
    assert ">Save</button>" not in shown
    assert "Delete permanently" not in shown
    assert client.post("/teams/team-a/secrets/KEY/delete").status_code == 403


@needs_rows
def test_without_a_key_the_page_says_so_and_the_rest_works(
    her: Client, job: LaunchSpec, by_alice: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "SECRETS_PUBLIC_KEY", "")
    shown = her.get("/teams/team-a/secrets").content.decode()
    assert "This portal cannot store secrets" in shown
    assert ">Save</button>" not in shown
    with pytest.raises(Refused, match="This portal cannot store secrets"):
        secret_actions.put_secret("team-a", "KEY", CANARY, by=by_alice)
    assert her.get("/teams/team-a/launch").status_code == 200
    actions.launch("team-a", job, by=by_alice)


@needs_rows
def test_the_launch_form_offers_them_remembers_them_and_no_link_carries_them(
    her: Client, a100: GpuClass, images: list[Image], by_alice: Actor
) -> None:
    launch = "/teams/team-a/launch"
    assert "Your team has no secrets." in her.get(launch).content.decode()
    for name in ("ONE", "TWO", "THREE"):
        secret_actions.put_secret("team-a", name, CANARY, by=by_alice)

    def ticked(text: str) -> set[str]:
        boxes = [part.split(">")[0] for part in text.split("<input") if 'name="secrets"' in part.split(">")[0]]
        return {box.split('value="')[1].split('"')[0] for box in boxes if "checked" in box}

    typed = {"kind": "job", "name": "train", "gpu_class": a100.slug, "units": 1, "image": "python"}
    typed |= {"secrets": ["ONE", "TWO"]}
    assert ticked(her.get(launch).content.decode()) == set()
    assert ticked(her.post(launch, {**typed, "look": "rest"}).content.decode()) == {"ONE", "TWO"}
    assert ticked(her.get(f"{launch}?secrets=ONE&repo=https://github.com/a/b").content.decode()) == set()

    assert her.post(launch, typed).status_code == 302
    assert Workload.objects.get().options == {"secrets": ["ONE", "TWO"]}
    actions.stop("team-a", "train", by=by_alice)
    Run.objects.update(ended_at="2026-01-01T00:00:00Z", outcome="stopped")
    secret_actions.delete_secret("team-a", "TWO", by=by_alice)
    again = her.get(f"{launch}?like=train").content.decode()
    assert ticked(again) == {"ONE"}
    assert "secret.ONE" in again  # in the plan, without its value
    assert CANARY not in again
    unknown = her.post(launch, {**typed, "name": "next"})
    assert unknown.status_code == 422
    assert "The team has no secret TWO." in unknown.content.decode()


@needs_rows
def test_the_api_puts_lists_and_deletes(granted: Tenant, alice: User, job: LaunchSpec, client: Client) -> None:
    _row, text = api_token_actions.create_token(
        name="ci", scopes=["read", "launch"], expires_in_days=1, by=Actor(user=alice, via="page")
    )
    headers = {"authorization": f"Bearer {text}"}

    def put(name: str, body: dict[str, Any]) -> Any:
        return client.put(f"{SECRETS}/{name}", body, content_type="application/json", headers=headers)

    lines = f"first\n{CANARY}\n"
    made = put("KEY", {"value": lines})
    assert (made.status_code, made.json()["name"], set(made.json())) == (
        201,
        "KEY",
        {"name", "by", "updated_at", "used_by"},
    )
    assert sealing.unseal(bytes(TeamSecret.objects.get().sealed)) == lines
    assert put("KEY", {"value": CANARY}).status_code == 200
    for body, code in (({}, "invalid"), ({"value": ""}, "invalid"), ({"value": CANARY, "x": CANARY}, "unknown_field")):
        refused = put("KEY", body)
        assert (refused.status_code, refused.json()["code"]) == (422, code)
        assert CANARY not in refused.content.decode()
    assert put("LD_PRELOAD", {"value": CANARY}).json()["code"] == "forbidden_variable"
    too_long = put("KEY", {"value": CANARY * 1000})
    assert (too_long.json()["code"], CANARY in too_long.content.decode()) == ("bad_value", False)

    body = {"kind": "job", "gpu_class": job.gpu_class, "image": "python", "options": {"secrets": ["KEY"]}}
    declared = client.put("/api/v1/workloads/train", body, content_type="application/json", headers=headers)
    assert (declared.status_code, declared.json()["options"]["secrets"]) == (201, ["KEY"])
    listed = client.get(SECRETS, headers=headers)
    assert [(one["name"], one["used_by"]) for one in listed.json()["items"]] == [("KEY", ["train"])]
    assert CANARY not in listed.content.decode()
    assert client.delete(f"{SECRETS}/KEY", headers=headers).status_code == 204
    assert client.delete(f"{SECRETS}/KEY", headers=headers).status_code == 404


@needs_rows
def test_the_value_is_nowhere_but_sealed(
    her: Client, job: LaunchSpec, by_alice: Actor, capfd: pytest.CaptureFixture[str]
) -> None:
    her.post("/teams/team-a/secrets", {"name": "KEY", "value": CANARY})
    actions.launch("team-a", replace(job, options=Options(secrets=("KEY",))), by=by_alice)
    addresses = ("secrets", "launch", "launch?like=train", "history", "workloads", "workloads/train", "members")
    for address in addresses:
        assert CANARY not in her.get(f"/teams/team-a/{address}").content.decode(), address

    # bytea columns are hexadecimal in this text.
    found = everything_in_the_database()
    assert CANARY not in found
    assert CANARY.encode().hex() not in found
    assert CANARY not in json.dumps([one.body for one in mail.outbox])
    said = capfd.readouterr()
    assert CANARY not in said.out + said.err


@needs_rows
def test_the_list_costs_two_queries(
    granted: Tenant, namespace_a: Namespace, by_alice: Actor, django_assert_num_queries: Any
) -> None:
    for name in ("A", "B", "C"):
        secret_actions.put_secret("team-a", name, CANARY, by=by_alice)
    with django_assert_num_queries(2):
        assert [row.name for row in secret_queries.secret_rows(namespace_a)] == ["A", "B", "C"]
