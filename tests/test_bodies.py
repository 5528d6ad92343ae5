"""Every body that the API takes: the contract describes each field, and an invalid field is refused by its name.

A stranger gets 404, whatever is wrong with the body.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.banner import actions as banner_actions
from catalog.interconnect.actions import record_measurement
from catalog.models import GpuClass, Image
from operations.maintenance.actions import plan_maintenance
from operations.models import Adoption
from tenants.announcements.actions import announce
from tenants.approvers import actions as approver_actions
from tenants.approvers.delegation import actions as delegation_actions
from tenants.class_access.image_prefixes import actions as image_prefixe_actions
from tenants.members import actions as member_actions
from tenants.members.invitations import actions as invitation_actions
from tenants.members.tokens import actions as token_actions
from tenants.models import Bundle, BundleLine, Membership, Namespace, Tenant
from tenants.onboarding.team_requests import actions as team_request_actions
from tenants.requests import actions
from tenants.requests.types import RequestedLine
from tests.catalog.interconnect.outputs import nccl
from tests.support.http.bodies import Call, Schema, answer_of, bodies, kind_of, whole
from tests.support.http.visits import signed_in_once, undone
from tests.support.rows import make, mirrored, running
from tests.support.rows.usage import budget
from tests.usage.idle import rows as idle_rows
from workloads.credentials.registries import actions as registry_actions
from workloads.credentials.secrets import actions as secret_actions
from workloads.lifetime.idle import reconcile as idle_reconcile
from workloads.models import Run, Volume
from workloads.storage import actions as storage_actions

# Everybody may send these: a stranger learns nothing from the answer.
OF_NO_TEAM = {"tokens_create", "joins_ask", "delegations_create", "team_requests_ask", "trials_begin"}
OF_NO_TEAM |= {"notices_read", "notice_preferences_put"}
# Revokes the token of the call; the sessions of these tests have none.
OF_A_TOKEN = {"me_token_revoke"}


# ---- OpenAPI contract --------------------------------------------------------------------------------------------


def unbounded(schema: Schema, path: str) -> Iterator[str]:
    found = whole(schema)
    kind = kind_of(found)
    if "enum" in found or kind == "boolean":
        return
    if kind == "string":
        needed = not found.keys() & {"maxLength", "format"}
    elif kind == "integer":
        needed = not found.keys() >= {"minimum", "maximum"}
    elif kind == "array":
        needed = "maxItems" not in found
        yield from unbounded(found["items"], f"{path}[]")
    else:
        assert kind == "object", (path, found)
        more = found.get("additionalProperties")
        needed = more is not False and not (isinstance(more, dict) and "maxProperties" in found)
        for name, one in found.get("properties", {}).items():
            yield from unbounded(one, f"{path}.{name}")
        if isinstance(more, dict):
            yield from unbounded(more, f"{path}{{}}")
    if needed:
        yield path


def test_the_contract_bounds_every_field() -> None:
    assert [path for name, (_method, _path, schema) in bodies().items() for path in unbounded(schema, name)] == []


# ---- invalid bodies ----------------------------------------------------------------------------------------------


@pytest.fixture
def calls(
    team_a: Tenant,
    namespace_a: Namespace,
    a100: GpuClass,
    alice: User,
    bob: User,
    charlie: User,
    dana: User,
    olga: User,
) -> dict[str, Call]:
    """One call of each operation by an authorized user, with a valid body."""
    GpuClass.objects.filter(pk=a100.pk).update(run_hours_limit=12, idle_stop_minutes=60, promise_limit=8)
    a100.refresh_from_db()
    make.grant(namespace_a.tenant, a100, units=8)
    Image.objects.create(name="python", reference="docker.io/library/python:3.14-slim", kind="job")
    notebook = running.workload(namespace_a, a100, by=alice, options={"run_hours": 8})
    running.make_ready(notebook)
    Run.objects.update(ends_at=timezone.now() + timedelta(hours=7))
    idle_reconcile.start_watch(notebook.runs.get())
    job = running.workload(namespace_a, a100, name="two", by=bob, kind="job", units=2)
    for one in (notebook, job):
        idle_rows.idle(one.runs.get())
    by_alice, later = Actor(alice, "page"), timezone.now() + timedelta(days=30)
    joining = invitation_actions.ask_to_join("team-a", message="", by=Actor(charlie, "page"))
    allowed, _is_new = image_prefixe_actions.allow_prefix(
        "team-a", "registry.example.org/vision/", by=Actor(olga, "page")
    )
    other = make.gpu_class(a100.cluster, slug="other")
    asked = RequestedLine(gpu_class=other.slug, units=2, starts=timezone.now(), ends=later, kind="base")
    filed = actions.file_request("team-a", lines=[asked], justification="Two.", by=by_alice)
    bundle = Bundle.objects.create(name="Starter", days=30)
    BundleLine.objects.create(bundle=bundle, gpu_class=other, units=1)
    founded = team_request_actions.request_team(
        name="New", slug="new", purpose="Trying.", bundle="Starter", by=by_alice
    )
    Membership.objects.filter(user=bob).update(role="manager")
    ends, team = later.isoformat(), {"team": "team-a"}
    line = {"gpu_class": a100.slug, "units": 1, "ends_at": ends}
    vision = make.tenant(a100.cluster, slug="vision")
    held = make.grant(vision, a100, units=1)
    budget(vision, cost="100", at_limit="confirm")
    make.member(vision, alice, Membership.Role.OWNER)
    deputy = delegation_actions.name_delegate(
        email=bob.email, starts=timezone.now(), ends=later, by=Actor(dana, "page")
    )
    invited = member_actions.add_member("team-a", email="frank@example.org", role="viewer", by=by_alice)
    GpuClass.objects.filter(pk=other.pk).update(starter=True, promise_limit=8)
    Volume.objects.create(namespace=namespace_a, name="kept", size_gib=1)
    Volume.objects.create(namespace=namespace_a, name="going", size_gib=1)
    storage_actions.request_delete("team-a", "going", by=by_alice)
    frank = make.user("Frank")
    banner_actions.put_banner(a100.cluster, text="Hello.", until=None, by=Actor(olga, "page"))
    secret_actions.put_secret("team-a", "KEY", "v", by=by_alice)
    registry_actions.put_login("team-a", "registry.example.org", registry_actions.RegistryLogin("u", "p"), by=by_alice)
    ofteam, _text = token_actions.create_team_token(
        "team-a", name="old", scopes=["read"], expires_in_days=1, by=by_alice
    )
    for slug in (a100.slug, None):
        approver_actions.grant_class(dana.pk, slug, by=Actor(olga, "page"))
    own, _text = api_token_actions.create_token(name="old", scopes=["read"], expires_in_days=1, by=by_alice)
    found = mirrored.with_metadata({"kind": "Namespace", "metadata": {"name": "found"}})
    mirrored.hardware_seen(a100.cluster, Namespace=[found])
    now = timezone.now()
    Adoption.objects.create(namespace=namespace_a, proposed_by=olga, read_at=now)
    vision.namespaces.update(origin="adopted")
    Adoption.objects.create(namespace=vision.namespaces.get(), proposed_by=olga, read_at=now, adopted_at=now)
    maintained = {
        "kind": "other",
        "reason": "Dust.",
        "starts_at": ends,
        "ends_at": (later + timedelta(days=1)).isoformat(),
    }
    fixed = plan_maintenance(
        a100.cluster, ["a100-1"], kind="other", reason="Dust.", holds_from=later, starts_at=later,
        ends_at=later + timedelta(days=1), by=Actor(olga, "page"),
    )  # fmt: skip
    announced = announce(
        title="T", body="B", severity="warning", audience="teams", classes=[], teams=["team-a"], starts=now, ends=later,
        wants_acknowledgement=True, by=Actor(olga, "page"),
    )  # fmt: skip
    [measured] = record_measurement(
        a100.cluster, "a100-1", output=nccl("20.00"), measured_on=None, by=Actor(olga, "page")
    )
    work = {"kind": "job", "gpu_class": a100.slug, "image": "python", "options": {}}
    named = team | {"name": "one"}
    return {
        "banner_put": Call(olga, {}, {"text": "Hello."}),
        "observe_only_set": Call(olga, {}, {"wanted": True}),
        "adoptions_propose": Call(
            olga, {}, {"namespace": "found", "slug": "found", "name": "Found", "owner": alice.email}
        ),
        "adoptions_accept": Call(alice, team, {"accepted": []}),
        "adoptions_undo": Call(olga, {"team": "vision"}),
        "adoptions_withdraw": Call(olga, team),
        "mig_sets_plan": Call(olga, {}, {"set": "NVIDIA-A100-SXM4-80GB:80:mixed"}),
        "maintenances_plan": Call(olga, {}, maintained | {"nodes": ["a100-2"]}),
        "maintenances_preview": Call(olga, {}, maintained | {"nodes": ["a100-2"]}),
        "node_measurements_record": Call(olga, {"name": "a100-1"}, {"output": nccl("371.42")}),
        "node_measurements_withdraw": Call(olga, {"name": "a100-1", "id": str(measured.pk)}, {"because": "Wrong."}),
        "maintenances_confirm": Call(olga, {"id": str(fixed.pk)}),
        "maintenances_cancel": Call(olga, {"id": str(fixed.pk)}),
        "maintenances_release": Call(olga, {"id": str(fixed.pk)}),
        "announcements_acknowledge": Call(alice, {"id": str(announced.pk)}),
        "operators_announcements_create": Call(
            olga, {}, {"title": "T", "body": "B", "audience": "everybody", "ends_at": ends}
        ),
        "operators_announcements_change": Call(olga, {"id": str(announced.pk)}, {"ends_at": ends}),
        "operators_announcements_withdraw": Call(olga, {"id": str(announced.pk)}),
        "delegations_create": Call(dana, {}, {"email": bob.email, "ends_at": ends}),
        "notices_read": Call(bob, {}, {"ids": [1]}),
        "notice_preferences_put": Call(bob, {}, {"approved": "page"}),
        "joins_ask": Call(dana, {}, {"team": "team-a", "message": "Please."}),
        "registries_put": Call(alice, team | {"host": "registry.example.org"}, {"username": "u", "password": "p"}),
        "requests_file": Call(alice, {}, {"team": "team-a", "justification": "Two.", "lines": [line]}),
        "requests_comment": Call(alice, {"id": str(filed.pk)}, {"text": "Soon, please."}),
        "requests_decide": Call(
            dana, {"id": str(filed.pk)}, {"lines": [{"id": filed.lines.get().pk, "approve": True}]}
        ),
        "secrets_put": Call(alice, team | {"name": "KEY"}, {"value": "v"}),
        "team_requests_ask": Call(bob, {}, {"name": "Third", "purpose": "Trying.", "bundle": "Starter"}),
        "team_requests_decide": Call(dana, {"id": str(founded.pk)}, {"approve": True}),
        "image_prefixes_allow": Call(olga, team, {"prefix": "ghcr.io/a/"}),
        "team_joins_answer": Call(alice, team | {"id": str(joining.pk)}, {"accept": True}),
        "members_add": Call(alice, team, {"email": dana.email}),
        "members_set_role": Call(alice, team | {"id": str(bob.pk)}, {"role": "viewer"}),
        "budget_set": Call(olga, team, {"amount": "5.00", "at_limit": "tell"}),
        "budget_remove": Call(olga, team),
        "budget_confirm": Call(alice, {"team": "vision"}),
        "namespace_set": Call(olga, team, {"wanted": "closed"}),
        "team_tokens_create": Call(alice, team, {"name": "ci", "scopes": ["read"]}),
        "tokens_create": Call(alice, {}, {"name": "ci", "scopes": ["read"]}),
        "workloads_launch": Call(alice, team, work | {"name": "three"}),
        "workloads_declare": Call(alice, named | {"name": "four"}, work),
        "workloads_extend": Call(alice, named, {"hours": 1}),
        "workloads_keep": Call(alice, named, {"hours": 1, "reason": "A demo."}),
        "idle_holders_keep": Call(alice, named, {"hours": 1, "reason": "A demo."}),
        "idle_holders_stop": Call(olga, named | {"name": "two"}, {"reason": "Others wait."}),
        "workloads_priority": Call(olga, named | {"name": "two"}, {"priority": "interactive", "because": "Due."}),
        "workloads_start": Call(alice, named, {}),
        "workloads_visibility": Call(alice, named, {"visibility": "private"}),
        "workloads_maintenance_choose": Call(alice, named | {"id": str(fixed.pk)}, {"at_drain": "stop"}),
        "teams_set": Call(alice, team, {"shares_notebooks": True}),
        "people_add": Call(olga, {}, {"email": "new@example.org", "name": "New"}),
        "people_password_code": Call(olga, {"id": str(frank.pk)}),
        "people_second_factor_drop": Call(olga, {"id": str(frank.pk)}, {"because": "Lost."}),
        "people_change": Call(olga, {"id": str(bob.pk)}, {"roles": ["operator"]}),
        "banner_remove": Call(olga, {}),
        "image_prefixes_disallow": Call(olga, team | {"id": str(allowed.pk)}),
        "joins_withdraw": Call(charlie, {"id": str(joining.pk)}),
        "members_remove": Call(alice, team | {"id": str(bob.pk)}),
        "people_not_approver_for": Call(olga, {"id": str(dana.pk), "slug": a100.slug}),
        "people_not_approver_for_all": Call(olga, {"id": str(dana.pk)}),
        "registries_delete": Call(alice, team | {"host": "registry.example.org"}),
        "secrets_delete": Call(alice, team | {"name": "KEY"}),
        "team_tokens_revoke": Call(alice, team | {"prefix": ofteam.prefix}),
        "team_invitations_revoke": Call(alice, team | {"id": str(invited.pk)}),
        "tokens_revoke": Call(alice, {"prefix": own.prefix}),
        "workloads_delete": Call(alice, named),
        "people_approver_for": Call(olga, {"id": str(dana.pk), "slug": other.slug}),
        "people_approver_for_all": Call(olga, {"id": str(dana.pk)}),
        "delegations_end": Call(dana, {"id": str(deputy.pk)}),
        "invitations_accept": Call(frank, {"id": str(invited.pk)}),
        "invitations_decline": Call(frank, {"id": str(invited.pk)}),
        "requests_withdraw": Call(alice, {"id": str(filed.pk)}),
        "team_requests_withdraw": Call(alice, {"id": str(founded.pk)}),
        "teams_grant_renew": Call(alice, {"team": "vision", "id": str(held.pk)}),
        "trials_begin": Call(charlie, {}),
        "volumes_delete": Call(alice, team | {"name": "kept"}),
        "volumes_keep": Call(alice, team | {"name": "going"}),
        "workloads_restart": Call(alice, named),
        "workloads_stop": Call(alice, named),
    }


def well(schema: Schema) -> Any:
    """A value that the schema accepts."""
    found = whole(schema)
    if "enum" in found:
        return found["enum"][0]
    values = {"string": "x", "integer": found.get("minimum"), "boolean": True, "array": [], "object": {}}
    return values[kind_of(found)]


def beyond(schema: Schema, value: Any, path: str = "") -> Iterator[tuple[str, Any, bool]]:
    """Yields `value` with one error each time, the field with the error, and whether it is a number."""
    found = whole(schema)
    if "enum" in found:
        yield path, "no-such-choice", False
        return
    match kind_of(found):
        case "string":
            if "maxLength" in found:
                yield path, "x" * (found["maxLength"] + 1), True
            if found.get("minLength"):
                yield path, "", False
            yield path, {"x": 1}, False
            yield path, 5, False
        case "boolean":
            yield path, "true", False
            yield path, 1, False
        case "integer":
            yield path, found["maximum"] + 1, True
            yield path, found["minimum"] - 1, True
            yield path, str(found["minimum"]), False
            yield path, True, False
        case "array":
            one = value[0] if value else well(found["items"])
            many = range(found["maxItems"] + 1)
            yield path, [f"{one}{number}" if isinstance(one, str) else one for number in many], True
            if found.get("minItems"):
                yield path, [], True
            for name, wrong, is_number in beyond(found["items"], one, f"{path}[0]"):
                yield name, [wrong], is_number
        case "object":
            yield from _beyond_object(found, value, path)


def _beyond_object(found: Schema, value: dict[str, Any], path: str) -> Iterator[tuple[str, Any, bool]]:
    more = found["additionalProperties"]
    if isinstance(more, dict):
        one = well(more)
        yield path, {f"K{number}": one for number in range(found["maxProperties"] + 1)}, True
        for where, wrong, is_number in beyond(more, one, f"{path}.K"):
            yield where, {"K": wrong}, is_number
        return
    yield f"{path}.no_such_field".lstrip("."), {**value, "no_such_field": 1}, False
    for name, inner in found["properties"].items():
        now = value[name] if name in value else well(inner)
        for where, wrong, is_number in beyond(inner, now, f"{path}.{name}".lstrip(".")):
            yield where, {**copy.deepcopy(value), name: wrong}, is_number


@pytest.mark.django_db
def test_what_is_beyond_is_refused_with_its_field_a_number_and_nothing_done(calls: dict[str, Call]) -> None:
    """Covers every call; the same call with a valid body succeeds."""
    assert calls.keys() == bodies().keys() - OF_A_TOKEN
    wrong = {}
    with signed_in_once({call.who for call in calls.values()}):
        for operation, call in calls.items():
            with undone():
                if found := list(taken_beyond(operation, call)):
                    wrong[operation] = found
    assert wrong == {}


def taken_beyond(operation: str, call: Call) -> Iterator[str]:
    tried, events = 0, Event.objects.count()
    for where, body, is_number in beyond(bodies()[operation][2], call.body):
        answer = answer_of(call.who, operation, call, body)
        if (operation, where) == ("requests_file", "team") and answer.status_code == 404:
            continue  # an invalid team name finds no team
        said = answer.json() if answer.content else {}
        # The action names the field without its path.
        names_it = said.get("field") in (where, where.rpartition(".")[2])
        is_code = (said.get("code") == "unknown_field") is where.endswith("no_such_field")
        says_number = not is_number or re.search(r"[0-9]", said.get("message", "").replace(where, ""))
        if not (answer.status_code == 422 and names_it and is_code and says_number):
            yield f"{where} of {json.dumps(body)[:200]}: {answer.status_code} {json.dumps(said)[:300]}"
        tried += 1
    if not tried or Event.objects.count() != events:
        yield f"{tried} tried, {Event.objects.count() - events} done"
    answer = answer_of(call.who, operation, call, call.body)
    if answer.status_code not in (200, 201, 202, 204, 409):
        yield f"the same, well: {answer.status_code} {answer.content[:300]}"


@pytest.mark.django_db
def test_a_stranger_is_told_that_nothing_is_there_whatever_is_sent(calls: dict[str, Call], settings: Any) -> None:
    settings.API_REQUESTS_PER_MINUTE = 1_000_000
    stranger, wrong = make.user("Eve"), {}
    with signed_in_once([stranger]):
        for operation in sorted(bodies().keys() - OF_NO_TEAM - OF_A_TOKEN):
            call = calls[operation]
            for where, body, _is_number in [("", call.body, False), *beyond(bodies()[operation][2], call.body)]:
                if operation == "requests_file" and where == "team":
                    continue  # it names no team
                with undone():
                    answer = answer_of(stranger, operation, call, body)
                if (answer.status_code, answer.json().get("code")) != (404, "not_found"):
                    wrong[f"{operation}: {where}"] = answer.json()
    assert wrong == {}
