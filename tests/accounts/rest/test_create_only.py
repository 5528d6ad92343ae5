"""`If-None-Match: *` only creates and `If-Match: *` only replaces, wherever a PUT does both."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import Event, Role, User
from accounts.rest.etag import none_match_refusal
from catalog.models import Banner, GpuClass, Image
from tenants.class_access.image_prefixes.actions import allow_prefix
from tenants.models import Namespace
from tests.support.http import contract
from tests.support.http.callers import caller, told
from tests.support.rows import make
from tests.support.threads import in_threads
from workloads.models import RegistryCredential, TeamSecret, Workload

EXISTS = (412, "already_exists", None)
CHANGED = (412, "changed_meanwhile", None)
PUTS = ("workload", "secret", "registry", "banner")


@pytest.mark.parametrize(
    ("sent", "current", "holds"),
    [
        ("*", None, True),
        ("*", '"a"', False),
        ('"a"', '"a"', False),
        ('W/"a"', '"a"', False),  # the comparison is weak
        ('"b"', '"a"', True),
        ('"b", "a"', '"a"', False),
        ('"a"', None, True),
        ('"*"', '"a"', True),
    ],
)
def test_what_does_not_match(sent: str, current: str | None, *, holds: bool) -> None:
    assert (none_match_refusal(sent, current) is None) is holds


@pytest.fixture
def puts(namespace_a: Namespace, a100: GpuClass, alice: User) -> dict[str, tuple[str, Any, Callable[[], int]]]:
    """Path, body, and the number of such objects."""
    make.grant(namespace_a.tenant, a100, units=4)
    Image.objects.create(name="PyTorch", reference="quay.io/jupyter/pytorch-notebook:2025", kind="job")
    alice.roles = [Role.OPERATOR]
    alice.save()
    allow_prefix("team-a", "registry.example.org/vision/", by=Actor(alice, via="page"))
    job = {"kind": "job", "gpu_class": a100.slug, "units": 1, "image": "PyTorch"}
    login = {"username": "robot", "password": "s3cr3t"}
    return {
        "workload": ("/api/v1/workloads/nightly?team=team-a", job, Workload.objects.count),
        "secret": ("/api/v1/secrets/KEY?team=team-a", {"value": "one"}, TeamSecret.objects.count),
        "registry": (
            "/api/v1/registries/registry.example.org?team=team-a", login, RegistryCredential.objects.count
        ),
        "banner": ("/api/v1/cluster/banner", {"text": "Maintenance.", "until": None}, Banner.objects.count),
    }  # fmt: skip


def put(client: Client, path: str, body: Any, **headers: str) -> Any:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return client.put(path, json.dumps(body), content_type="application/json", headers=named)


@pytest.mark.parametrize("what", PUTS)
def test_only_created_and_only_replaced(puts: Any, alice: User, what: str) -> None:
    path, body, count = puts[what]
    client = caller(alice)
    assert told(put(client, path, body, If_Match="*")) == CHANGED
    assert count() == 0
    made = put(client, path, body, If_None_Match="*")
    assert made.status_code in (200, 201), made.json()
    assert count() == 1
    events = Event.objects.count()
    assert told(put(client, path, body, If_None_Match="*")) == EXISTS
    assert Event.objects.count() == events
    assert put(client, path, body, If_Match="*").status_code == 200
    assert told(put(client, path, body, If_Match='"another"')) == CHANGED


@pytest.mark.django_db(transaction=True)
def test_of_two_that_create_at_once_one_does(puts: Any, alice: User) -> None:
    path, body, count = puts["workload"]
    clients = [caller(alice) for _ in range(4)]
    answers: list[int] = []

    def create(client: Client) -> Callable[[], None]:
        return lambda: answers.append(put(client, path, body, If_None_Match="*").status_code)

    in_threads(0, lambda: None, *map(create, clients))
    assert sorted(answers)[0] == 201
    assert set(answers[1:]) | {201} <= {201, 409, 412}
    assert answers.count(201) == 1
    assert count() == 1


def test_every_put_that_creates_takes_it() -> None:
    creating = {
        operation["operationId"]
        for operations in contract.contract()["paths"].values()
        for method, operation in operations.items()
        if method == "put" and ("201" in operation["responses"] or operation["operationId"] == "banner_put")
    }
    taking = {
        operation["operationId"]
        for operations in contract.contract()["paths"].values()
        for operation in operations.values()
        for one in operation.get("parameters", [])
        if one["name"] == "If-None-Match" and operation["operationId"] != "contract_get"
    }
    assert creating == taking
