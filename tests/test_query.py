"""Query parameters of every API call: bounded in the contract, and refused if they are unknown.

An impossible name or size is the same error for everybody, so it is refused before anything is looked up.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from accounts.models import Event, Role, User
from accounts.rest.strict.query import OWN_CODES
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Namespace, Tenant
from tests.support.http import contract
from tests.support.rows import make

pytestmark = pytest.mark.django_db
FILLED = {"id": "1", "number": "1", "slug": "a100", "team": "team-a", "name": "one", "prefix": "p", "host": "r"}
# Operations of the web process: the contract's own address has no parameters, and doors serves the log.
OPERATIONS = {
    operation["operationId"]: (method, path.format(**FILLED), operation)
    for path, operations in contract.contract()["paths"].items()
    for method, operation in operations.items()
    if path.startswith("/api/v1/") and not path.endswith(".json")
}


def parameters(operation: str) -> dict[str, dict[str, Any]]:
    found = OPERATIONS[operation][2].get("parameters", [])
    return {one["name"]: one["schema"] for one in found if one["in"] == "query"}


def answer_of(who: User, operation: str, query: str) -> tuple[int, dict[str, Any]]:
    method, path, _operation = OPERATIONS[operation]
    client = Client()
    if Role.ADMIN in who.roles:
        make.administrator(client, who)
    else:
        client.force_login(who)
    body = "" if method == "get" else "{}"
    found = client.generic(method.upper(), f"{path}?{query}", body, content_type="application/json")
    return found.status_code, json.loads(found.content) if found.content else {}


def is_bounded(schema: dict[str, Any]) -> bool:
    if "enum" in schema:
        return True
    return "maxLength" in schema if schema["type"] == "string" else schema.keys() >= {"minimum", "maximum"}


def test_the_contract_bounds_every_parameter() -> None:
    found = [(operation, *one) for operation in OPERATIONS for one in parameters(operation).items()]
    assert found
    assert [(operation, name) for operation, name, schema in found if not is_bounded(schema)] == []


def test_the_contract_says_what_every_parameter_is() -> None:
    said = {
        (operation, one["name"]): one.get("description", "")
        for operation, (_method, _path, described) in OPERATIONS.items()
        for one in described.get("parameters", [])
    }
    # drf-spectacular's list of the values alone adds nothing to `enum`.
    assert [one for one, text in said.items() if not text or "* `" in text] == []


def test_what_is_not_known_stands_twice_or_is_too_long_is_refused(alice: User, team_a: Tenant) -> None:
    events = Event.objects.count()
    for operation in OPERATIONS:
        known = parameters(operation)
        status, said = answer_of(alice, operation, "no_such=1")
        assert (status, said["code"], said["field"]) == (422, "unknown_field", "no_such"), operation
        assert all(name in said["message"] for name in known), operation
        for name, schema in known.items():
            status, said = answer_of(alice, operation, f"{name}=1&{name}=1")
            assert (status, said["code"], said["field"]) == (400, "duplicate_key", name), operation
            assert answer_of(alice, operation, f"{name}=%00")[0] == 422, (operation, name)
            assert name in OWN_CODES or answer_of(alice, operation, f"{name}=")[0] == 422, (operation, name)
            if most := schema.get("maxLength"):
                status, said = answer_of(alice, operation, f"{name}={'9' * (most + 1)}")
                assert (status, said["field"]) == (422, name), (operation, said)
                assert str(most) in said["message"], (operation, said)
    assert Event.objects.count() == events


def test_who_is_not_signed_in_or_may_not_is_told_that_first(alice: User) -> None:
    assert Client().get("/api/v1/workloads?no_such=1").status_code == 401


def test_every_get_may_be_asked_to_wait_and_answers_at_once_where_there_is_nothing_to_wait_for(alice: User) -> None:
    assert answer_of(alice, "me", "wait=60")[0] == 200
    assert answer_of(alice, "tokens_create", "wait=60")[1]["code"] == "unknown_field"


def test_a_stranger_learns_nothing_by_it(charlie: User, alice: User, namespace_a: Namespace) -> None:
    for operation in ("workloads_get", "workloads_declare", "teams_get"):
        told = [answer_of(who, operation, "team=team-a&no_such=1") for who in (charlie, alice)]
        assert told[0] == told[1]


def lists_with(parameter: str) -> list[str]:
    found = [one for one in OPERATIONS if OPERATIONS[one][0] == "get" and parameter in parameters(one)]
    assert found
    return found


@pytest.fixture
def staff(dana: User) -> User:
    """May read every list of staff."""
    dana.roles = [*dana.roles, Role.OPERATOR, Role.ADMIN]
    dana.save()
    return dana


def test_a_team_that_is_not_there_is_not_found_and_so_is_a_team_of_others(
    alice: User, staff: User, team_a: Tenant, cluster: Cluster
) -> None:
    make.tenant(cluster, slug="team-b", namespace="team-b")
    for operation in lists_with("team"):
        status, said = answer_of(staff, operation, "team=nobody")
        assert (status, said.get("code")) == (404, "not_found"), operation
        if operation not in ("inbox_list", "queue_get"):
            assert answer_of(alice, operation, "team=team-b") == (status, said), operation
            assert answer_of(alice, operation, "team=nobody") == (status, said), operation


def test_a_class_that_is_not_there_is_refused_and_so_is_a_class_of_other_teams(
    alice: User, staff: User, namespace_a: Namespace, a100: GpuClass, cluster: Cluster
) -> None:
    make.gpu_class(cluster, slug="hidden", visibility=GpuClass.Visibility.NAMED)
    for operation in lists_with("gpu_class"):
        team = "team=team-a&" if operation == "workloads_list" else ""
        status, said = answer_of(staff, operation, f"{team}gpu_class=h100x")
        assert (status, said["code"], said["field"]) == (422, "unknown_class", "gpu_class"), operation
        assert answer_of(staff, operation, f"{team}gpu_class={a100.slug}")[0] == 200, operation
        if operation not in ("inbox_list", "operators_teams_get", "queue_get"):
            assert answer_of(alice, operation, "gpu_class=hidden")[1]["code"] == "unknown_class", operation
            assert answer_of(alice, operation, f"gpu_class={a100.slug}")[0] == 200, operation


def test_a_person_that_is_not_there_is_refused_and_so_is_a_person_of_other_teams(
    alice: User, bob: User, charlie: User, staff: User, namespace_a: Namespace
) -> None:
    unknown = [answer_of(alice, "workloads_list", f"created_by={one}") for one in (charlie.email, "nobody@example.org")]
    assert [(status, said["code"], said["field"]) for status, said in unknown] == [
        (422, "unknown_person", "created_by")
    ] * 2
    told = [
        said["message"].replace(one, "…")
        for (_, said), one in zip(unknown, (charlie.email, "nobody@example.org"), strict=True)
    ]
    assert told[0] == told[1]
    assert answer_of(alice, "workloads_list", f"created_by={bob.email.upper()}") == (200, {"items": [], "next": None})
    status, said = answer_of(staff, "tokens_list", "owner=nobody@example.org")
    assert (status, said["code"], said["field"]) == (422, "unknown_person", "owner")
    assert answer_of(staff, "tokens_list", f"owner={charlie.email}")[0] == 200
