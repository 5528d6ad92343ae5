"""Calls every URL with a team token whose maker is in two teams, has every staff role and is a delegate.

The token shows and changes nothing of the other team, of staff's pages or of its maker's account. The same calls
with a personal token of the same user show that each of them would have done so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.models import ApiToken, Role, Scope, User
from catalog.banner.actions import put_banner
from catalog.models import GpuClass, Image
from operations.models import Adoption, Maintenance
from tenants.announcements.actions import announce
from tenants.members.tokens import actions as token_actions
from tenants.models import (
    ApproverFor,
    Bundle,
    BundleLine,
    ClassAccess,
    ImagePrefix,
    Invitation,
    JoinRequest,
    Membership,
    Namespace,
    TeamRequest,
    Tenant,
)
from tenants.requests import actions
from tenants.requests.types import RequestedLine
from tests.support.http.contract import query_of
from tests.support.http.routes import all_routes, filled
from tests.support.http.visits import rows_of, undone
from tests.support.rows import make, running
from workloads.credentials.secrets.models import TeamSecret
from workloads.models import RegistryCredential, Volume

# This text is in all that the token must not show, and in nothing that the test sends.
CANARY = "kanari"
MARKS = (CANARY, "team-b", "team-c", '"named"', '"works"')
OURS = ("accounts", "catalog", "tenants", "workloads", "usage", "operations")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
OF_PERSON = (
    "api-person",
    "api-person-password-code",
    "api-person-second-factor-drop",
    "api-approver-for-all",
    "api-approver-for",
)
OF_ANNOUNCEMENT = ("api-announcement-acknowledge", "api-announcement", "api-announcement-withdraw")
OF_MAINTENANCE = tuple(f"api-maintenance{which}" for which in ("", "-confirm", "-cancel", "-release"))
# Calls that do nothing, also with the personal token, and the reason.
EMPTY = {
    "GET api-bundles": "what new teams begin with is for everybody",
    "GET api-images": "for everybody",
    "GET api-banner": "for everybody",
    "GET api-request-facts": "for approvers who are not in the team",
    "POST api-trials": "the person has a team",
    "POST api-team-requests": "the person waits for an answer already",
    "POST api-team-grant-renew": "a line about the class is pending",
    "POST api-workload-extend": "a notebook without an end",
    "POST api-workload-keep": "no rule stops it",
    "POST api-adoption-undo": "nothing is adopted yet",
    "POST api-mig-set-plan": "the cluster has no node with MIG",
    "POST api-maintenances": "the cluster has no node of that name",
    "POST api-maintenance-preview": "the cluster has no node of that name",
    "GET api-node-measurements": "the cluster has no node of that name",
    "POST api-node-measurement-withdraw": "nothing was measured",
    "POST api-node-measurements": "the cluster has no node of that name",
    "GET api-gpu-faults": "no GPU has a fault",
    "GET api-idle-holders": "no run is idle",
    "POST api-idle-keep": "its GPUs are not idle",
    "POST api-idle-stop": "its GPUs are not idle",
    "PUT api-workload-maintenance-choose": "its node is in no maintenance",
    "POST api-workload-runs": "the last run has not ended",
    "POST api-budget-confirm": "the team has no budget",
    "POST api-volume-keep": "it is not marked for deletion",
    "POST api-person-second-factor-drop": "the account has none",
}


@pytest.fixture
def nora(team_a: Tenant) -> User:
    """Owner of two teams, with every staff role, and delegate of an approver."""
    found = make.user("Nora", roles=[Role.APPROVER, Role.OPERATOR, Role.AUDITOR, Role.ADMIN])
    ApproverFor.objects.create(user=found, gpu_class=None)
    make.member(team_a, found, Membership.Role.OWNER)
    return found


@pytest.fixture
def team_b(namespace_a: Namespace, nora: User, charlie: User) -> Namespace:
    found = make.tenant(namespace_a.cluster, slug="team-b", namespace=f"{namespace_a.name}-b")
    Tenant.objects.filter(pk=found.pk).update(name=f"Team of {CANARY}", purpose=CANARY)
    make.member(found, nora, Membership.Role.OWNER)
    make.member(found, make.user("Kanari"))
    return found.namespaces.get()


@pytest.fixture
def ids(team_b: Namespace, a100: GpuClass, nora: User, charlie: User) -> dict[str, str]:
    """Objects outside of team A: the name of a route or of its parameter → what to fill in."""
    cluster, now = team_b.cluster, timezone.now()
    named = make.gpu_class(cluster, slug="named", name=f"Class of {CANARY}", visibility=GpuClass.Visibility.NAMED)
    ClassAccess.objects.create(tenant=team_b.tenant, gpu_class=named)
    grant = make.grant(team_b.tenant, named, units=4)
    maintained = Maintenance.objects.create(
        cluster=cluster, kind="other", reason=CANARY, holds_from=now, starts_at=now, ends_at=now + timedelta(days=1),
        created_by=nora,
    )  # fmt: skip
    announced = announce(
        title=CANARY, body=CANARY, severity="warning", audience="everybody", classes=[], teams=[], starts=now,
        ends=now + timedelta(days=1), wants_acknowledgement=True, by=Actor(nora, "page"),
    )  # fmt: skip
    Adoption.objects.create(namespace=team_b, proposed_by=nora, read_at=now)
    running.known(cluster.pk)
    running.workload(team_b, named, name="works", by=nora, command=[CANARY])
    Volume.objects.create(namespace=team_b, name="works", size_gib=1, due_at=None)
    TeamSecret.objects.create(namespace=team_b, name="works", sealed=b"1", created_by=make.user("Kanarienvogel"))
    prefix = ImagePrefix.objects.create(tenant=team_b.tenant, prefix=f"registry.example.org/{CANARY}/")
    bird = User.objects.get(name="Kanarienvogel")
    RegistryCredential.objects.create(namespace=team_b, registry="registry.example.org", sealed=b"1", created_by=bird)
    by_charlie, far = Actor(charlie, "page"), now + timedelta(days=9)
    make.member(team_b.tenant, charlie, Membership.Role.OWNER)
    lines = [RequestedLine("named", 5, now, far)]
    filed = actions.file_request("team-b", lines=lines, justification=CANARY, by=by_charlie)
    house = make.tenant(cluster, slug="team-c")
    Tenant.objects.filter(pk=house.pk).update(name=f"House of {CANARY}")
    ClassAccess.objects.create(tenant=house, gpu_class=named)
    Membership.objects.filter(user=charlie).update(tenant=house)
    waiting = actions.file_request("team-c", lines=lines, justification=CANARY, by=by_charlie)
    Membership.objects.filter(user=charlie).delete()
    put_banner(cluster, text="Hello.", until=None, by=Actor(nora, "page"))
    Image.objects.create(name="image", reference="example.org/image:1", kind="notebook")
    invited = Invitation.objects.create(tenant=house, email=nora.email, role="member", expires_at=far)
    joining = JoinRequest.objects.create(tenant=house, user=nora, message=CANARY)
    of_team = {
        "invitation": Invitation.objects.create(
            tenant=team_b.tenant, email="kanari.bird@example.org", role="member", expires_at=far
        ),
        "join": JoinRequest.objects.create(tenant=team_b.tenant, user=charlie, message=CANARY),
    }
    bundle = Bundle.objects.create(name="Small")
    BundleLine.objects.create(bundle=bundle, gpu_class=a100, units=1)
    own = TeamRequest.objects.create(user=nora, name=f"{CANARY} nora", slug="x-own", purpose="x", bundle=bundle)
    asked = TeamRequest.objects.create(user=charlie, name=f"{CANARY} charlie", slug="x-c", purpose="x", bundle=bundle)
    deputy = make.deputy(nora, of=make.approver("Kanarina"))
    ApproverFor.objects.create(user=deputy.approver, gpu_class=named)
    by_nora = Actor(nora, "page")
    personal, _text = api_token_actions.create_token(name=CANARY, scopes=["read"], expires_in_days=3, by=by_nora)
    other, _text = token_actions.create_team_token(
        "team-b", name=CANARY, scopes=["read"], expires_in_days=3, by=by_nora
    )
    return {
        "api-invitation-accept": str(invited.pk),
        "api-invitation-decline": str(invited.pk),
        "api-join": str(joining.pk),
        "api-team-invitation": str(of_team["invitation"].pk),
        "api-team-join": str(of_team["join"].pk),
        "api-team-member": str(User.objects.get(name="Kanari").pk),
        "api-team-grant-renew": str(grant.pk),
        "api-image-prefix": str(prefix.pk),
        "api-team-request-decide": str(asked.pk),
        "api-team-request-withdraw": str(own.pk),
        "api-delegation-end": str(deputy.pk),
        **dict.fromkeys(OF_PERSON, str(deputy.approver_id)),
        **dict.fromkeys(OF_ANNOUNCEMENT, str(announced.pk)),
        **dict.fromkeys(OF_MAINTENANCE, str(maintained.pk)),
        "api-team-token": other.prefix,
        "api-token": personal.prefix,
        "request": str(filed.pk),
        "api-request-decide": str(waiting.pk),
        "line": str(waiting.lines.get().pk),
        "a100": a100.slug,
    }


def bodies(ids: dict[str, str]) -> dict[str, dict[str, Any]]:
    far = (timezone.now() + timedelta(days=9)).isoformat()
    farther = (timezone.now() + timedelta(days=10)).isoformat()
    lines = [{"gpu_class": ids["a100"], "units": 1, "ends_at": far}]
    job = {"kind": "notebook", "gpu_class": "named", "units": 1, "image": "image"}
    token = {"name": "next", "scopes": ["read"], "expires_in_days": 3}
    maintenance = {"nodes": ["n1"], "kind": "other", "reason": "x", "starts_at": far, "ends_at": farther}
    return {
        "PUT api-budget": {"amount": "9.00", "at_limit": "tell"},
        "PUT api-banner": {"text": "Hello.", "until": None},
        "PUT api-observe-only": {"wanted": True},
        "POST api-adoptions": {"namespace": "n1", "slug": "n1", "name": "N1", "owner": "charlie@example.org"},
        "POST api-adoption-accept": {"accepted": []},
        "POST api-announcements": {"title": "x", "body": "x", "audience": "everybody", "ends_at": far},
        "PATCH api-announcement": {"ends_at": far},
        "POST api-mig-set-plan": {"set": "NVIDIA-A100-SXM4-80GB:80:mixed"},
        "POST api-node-measurements": {"output": "x"},
        "POST api-node-measurement-withdraw": {"because": "x"},
        "POST api-maintenances": maintenance,
        "POST api-maintenance-preview": maintenance,
        "POST api-delegations": {"email": "charlie@example.org", "ends_at": far},
        "POST api-joins": {"team": "team-d"},
        "POST api-people": {"email": "new@example.org", "name": "New"},
        "POST api-person-second-factor-drop": {"because": "x"},
        "PUT api-registry": {"username": "x", "password": "y"},
        "POST api-requests": {"team": "team-b", "justification": "x", "lines": lines},
        "POST api-request-comments": {"text": "x"},
        "POST api-request-decide": {"lines": [{"id": int(ids["line"]), "approve": False, "reason": "No."}]},
        "PUT api-secret": {"value": "x"},
        "POST api-team-requests": {"name": "New one", "purpose": "x", "bundle": "Small"},
        "POST api-team-request-decide": {"approve": False, "reason": "No."},
        "PATCH api-team-namespace": {"wanted": "suspended"},
        "PATCH api-person": {"roles": []},
        "POST api-image-prefixes": {"prefix": "other.example.org/x/"},
        "POST api-team-join": {"accept": True},
        "POST api-team-members": {"email": "dana@example.org", "role": "member"},
        "PATCH api-team-member": {"role": "viewer"},
        "POST api-team-tokens": token,
        "POST api-tokens": token,
        "POST api-workloads": {"name": "more", **job},
        "PUT api-workload": job,
        "POST api-workload-priority": {"priority": "batch", "because": "x"},
        "POST api-workload-extend": {"hours": 1},
        "POST api-workload-keep": {"hours": 1, "reason": "x"},
        "POST api-idle-keep": {"hours": 1, "reason": "x"},
        "POST api-idle-stop": {"reason": "x"},
        "POST api-workload-visibility": {"visibility": "private"},
        "PUT api-workload-maintenance-choose": {"at_drain": "stop"},
        "PATCH api-team": {"shares_notebooks": True},
    }


def calls(ids: dict[str, str]) -> Iterator[tuple[str, str, list[str], dict[str, Any]]]:
    """Returns name, method, addresses and body of every call of the API."""
    sent = bodies(ids)
    for route, pattern in all_routes():
        view = getattr(pattern.callback, "cls", None)
        if view is None or not route.startswith("api/"):
            continue
        pk = ids.get(str(pattern.name), ids["request"])
        values = {"tenant": "team-b", "name": "works", "slug": "named", "registry": "registry.example.org"}
        address = filled(route, {**values, "pk": pk, "prefix": pk})
        for method in METHODS:
            if not hasattr(view, method.lower()):
                continue
            if (method, pattern.name) == ("DELETE", "api-me-token"):
                continue  # the walk would end with it, since the token revokes itself
            of_team = query_of(method, route, team="team-b") or query_of(method, route, q="works")
            of_all = query_of(method, route, owner="everybody")
            queries = sorted({of_team} if method != "GET" else {of_team, of_all, ""})
            name = f"{method} {pattern.name}"
            yield name, method, [address + query for query in queries], sent.get(name, {})


def send(client: Client, method: str, address: str, body: dict[str, Any]) -> HttpResponse:
    return client.generic(method, address, json.dumps(body), content_type="application/json")


def rows() -> str:
    """Returns all rows except the hourly measurements."""
    ours = [model for model in apps.get_models() if model._meta.app_label in OURS]
    return rows_of(*(model for model in ours if model._meta.pk.column))


def test_a_teams_token_meets_nothing_outside_of_its_team(
    ids: dict[str, str], nora: User, dana: User, namespace_a: Namespace, settings: Any
) -> None:
    settings.API_REQUESTS_PER_MINUTE = 10_000
    make.tenant(namespace_a.cluster, slug="team-d")
    by = Actor(nora, "page")
    make.second_factor(nora)
    scopes = [scope for scope in Scope.values if scope != Scope.DECIDE]
    _token, text = token_actions.create_team_token("team-a", name="ci", scopes=scopes, expires_in_days=9, by=by)
    _token, own = api_token_actions.create_token(name="own", scopes=list(Scope), expires_in_days=9, by=by)
    # A time in the future, so that the next calls do not write it.
    ApiToken.objects.update(last_used_at=timezone.now() + timedelta(days=1), scopes=list(Scope.values))
    ci, person = (Client(headers={"Authorization": f"Bearer {one}"}) for one in (text, own))
    before = rows()
    shown, changed, idle, walked = [], [], [], 0
    for name, method, addresses, body in calls(ids):
        answers = [send(ci, method, address, body) for address in addresses]
        if any(mark in answer.content.decode().lower() for mark in MARKS for answer in answers):
            shown.append(name)
        if rows() != before:
            changed.append(name)
            before = rows()
        with undone():
            theirs = [send(person, method, address, body) for address in addresses]
            met = [
                a.content
                for a, b in zip(theirs, answers, strict=True)
                if a.status_code < 300 and a.content != b.content
            ]
            if not met and rows() == before:
                idle.append((name, [answer.content.decode()[:200] for answer in theirs]))
        walked += 1
    assert (shown, changed) == ([], [])
    assert [one for one in idle if one[0] not in EMPTY] == []
    assert walked > 60
