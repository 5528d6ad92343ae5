"""Who can open a notebook: the choice at launch, its change, and what other members and the owner see of it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass
from portal.core.errors import Refused
from tenants.members.actions import set_sharing
from tenants.models import Membership, Namespace, Tenant
from tests.support.http.callers import WorkloadsCaller
from tests.support.rows import make, running
from tests.support.threads import in_threads
from workloads.gateway import actions
from workloads.gateway.authorization import GatewayDenial, NotebookUpstream, authorise
from workloads.launch import actions as launch_actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Ticket, Workload

pytestmark = pytest.mark.django_db
PAGE = "/teams/team-a/workloads/one"
OPEN = f"{PAGE}/open"


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def alices(alice: User) -> Client:
    return signed_in(alice)


@pytest.fixture
def bobs(bob: User) -> Client:
    return signed_in(bob)


@pytest.fixture
def private(namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    found = running.workload(namespace_a, a100, by=alice, visibility="private")
    running.make_ready(found)
    return found


def opened(client: Client, origin: str) -> str:
    """Presses Open and goes to the notebook's own origin; returns the cookie."""
    response = client.post(OPEN)
    assert response.status_code == 303, response.content[:300]
    ticket = parse_qs(urlsplit(response["Location"]).query)["ticket"][0]
    return actions.redeem_ticket(ticket, origin=origin)


def share(client: Client, visibility: str) -> int:
    return client.post(f"{PAGE}/visibility", {"visibility": visibility}).status_code


# ---- opening ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["member", "manager", "owner"])
def test_nobody_but_its_owner_opens_a_private_notebook(
    private: Workload, alices: Client, bobs: Client, bob: User, role: str
) -> None:
    Membership.objects.filter(user=bob).update(role=role)
    refused = bobs.post(OPEN)
    assert refused.status_code == 403
    assert refused.context["refusal"].code == "private_notebook"
    assert not Ticket.objects.exists()
    page = bobs.get(PAGE).content.decode()
    assert "This notebook is private to Alice. Ask Alice to share it" in page
    assert "Share with the team" not in page
    assert "only Alice." in page
    assert alices.post(OPEN).status_code == 303


def test_staff_who_are_no_members_open_none(private: Workload, olga: User) -> None:
    client = signed_in(olga)
    assert client.post(OPEN).status_code == 403
    assert share(client, "team") == 403
    assert not Ticket.objects.exists()


def test_the_list_offers_what_opens(private: Workload, alices: Client, bobs: Client) -> None:
    address = f'formaction="{OPEN}"'
    assert address in alices.get("/teams/team-a/workloads").content.decode()
    assert address not in bobs.get("/teams/team-a/workloads").content.decode()
    Workload.objects.update(visibility="team")
    assert address in bobs.get("/teams/team-a/workloads").content.decode()


def test_the_home_is_the_same_for_everybody_and_offers_it_to_its_owner(
    private: Workload, alice: User, alices: Client, bobs: Client
) -> None:
    """The script shows the button to this person: the part is also sent to all who have the page open."""
    button = f'data-opener="{alice.pk}" hidden form="opens" formaction="{OPEN}"'
    for client in (alices, bobs):
        assert button in client.get("/teams/team-a").content.decode()
    Workload.objects.update(visibility="team")
    assert "data-opener" not in bobs.get("/teams/team-a").content.decode()


def test_open_leads_to_a_new_tab(private: Workload, alices: Client) -> None:
    for page in (PAGE, "/teams/team-a/workloads", "/teams/team-a"):
        text = alices.get(page).content.decode()
        assert 'target="_blank" rel="noopener"' in text
        assert 'title="Opens in a new tab"' in text


# ---- sharing and making private again --------------------------------------------------------------------------------


def test_its_owner_shares_it_and_takes_it_back(private: Workload, alices: Client, bobs: Client) -> None:
    assert share(alices, "team") == 302
    cookie = opened(bobs, private.origin)
    hers = opened(alices, private.origin)
    assert isinstance(authorise(private.origin, [cookie]), NotebookUpstream)
    waiting = parse_qs(urlsplit(bobs.post(OPEN)["Location"]).query)["ticket"][0]
    assert share(alices, "private") == 302
    assert authorise(private.origin, [cookie]) is GatewayDenial.GONE
    # A ticket that was on its way is worth as little.
    assert authorise(private.origin, [actions.redeem_ticket(waiting, origin=private.origin)]) is GatewayDenial.GONE
    assert isinstance(authorise(private.origin, [hers]), NotebookUpstream)
    assert bobs.post(OPEN).status_code == 403
    said = Event.objects.filter(verb="notebook.visibility_set").order_by("id").values_list("actor", "after")
    assert list(said) == [("Alice", {"visibility": "team"}), ("Alice", {"visibility": "private"})]


def test_nobody_else_shares_it(private: Workload, bobs: Client, bob: User) -> None:
    for role in ("member", "manager", "owner", "viewer"):
        Membership.objects.filter(user=bob).update(role=role)
        assert share(bobs, "team") == 403
    private.refresh_from_db()
    assert private.visibility == "private"
    assert share(signed_in(make.user("Eve")), "team") == 404


def test_the_same_choice_again_changes_nothing(private: Workload, alices: Client) -> None:
    assert share(alices, "private") == 302
    assert share(alices, "everybody") == 422
    assert not Event.objects.filter(verb="notebook.visibility_set").exists()


def test_the_first_opening_of_each_run_by_somebody_else_is_recorded(
    private: Workload, alice: User, alices: Client, bobs: Client
) -> None:
    share(alices, "team")
    for _ in range(3):
        assert bobs.post(OPEN).status_code == 303
    openings = Event.objects.filter(verb="notebook.opened", tenant="team-a")
    assert list(openings.values_list("actor", "after")) == [("Bob", {"run": 1})]
    assert "Bob" in alices.get(PAGE).content.decode().partition('id="events"')[2]
    now = Run.objects.get().requested_at
    Run.objects.update(ended_at=now, outcome="stopped")
    Run.objects.create(workload=private, number=2, spec=Run.objects.get().spec, requested_by=alice, ready_at=now)
    assert bobs.post(OPEN).status_code == 303
    assert list(openings.order_by("id").values_list("after__run", flat=True)) == [1, 2]
    for _ in range(2):
        assert alices.post(OPEN).status_code == 303
    assert openings.filter(actor="Alice").count() == 2


@pytest.mark.django_db(transaction=True)
def test_two_openings_at_once_are_recorded_once(private: Workload, bob: User) -> None:
    Workload.objects.update(visibility="team")
    by = Actor(user=bob, via="page")

    def press() -> None:
        actions.issue_ticket("team-a", "one", session_key="s", by=by)
        connection.close()

    in_threads(4, press)
    assert Ticket.objects.count() == 4
    assert Event.objects.filter(verb="notebook.opened").count() == 1


# ---- the choice at launch --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("granted")
def test_a_launch_without_a_choice_follows_the_team(notebook: LaunchSpec, by_alice: Actor, by_bob: Actor) -> None:
    def launched(name: str, visibility: str = "") -> str:
        wanted = LaunchSpec(**{**vars(notebook), "name": name, "visibility": visibility})
        return launch_actions.launch("team-a", wanted, by=by_bob).visibility

    assert (launched("one"), launched("two", "team")) == ("private", "team")
    set_sharing("team-a", shares_notebooks=True, by=by_alice)
    assert (launched("three"), launched("four", "private")) == ("team", "private")
    assert Workload.objects.get(name="one").visibility == "private"


@pytest.mark.usefixtures("granted")
def test_only_its_owner_changes_it_with_the_declaration(notebook: LaunchSpec, by_alice: Actor, by_bob: Actor) -> None:
    launch_actions.launch("team-a", notebook, by=by_bob)
    shared = LaunchSpec(**{**vars(notebook), "visibility": "team"})
    with pytest.raises(Refused) as refused:
        launch_actions.declare("team-a", shared, by=by_alice)
    assert (refused.value.code, refused.value.refusal.field) == ("not_allowed", "visibility")
    # Without the field, a manager changes the rest.
    launch_actions.declare("team-a", LaunchSpec(**{**vars(notebook), "volume": "data"}), by=by_alice)
    assert Workload.objects.get().visibility == "private"
    launch_actions.declare("team-a", shared, by=by_bob)
    assert Workload.objects.get().visibility == "team"


@pytest.mark.usefixtures("granted")
def test_the_form_offers_the_choice_for_notebooks(
    notebook: LaunchSpec, job: LaunchSpec, by_alice: Actor, alices: Client, bobs: Client
) -> None:
    def chosen(client: Client, query: str) -> str:
        page = client.get(f"/teams/team-a/launch?{query}").content.decode()
        select = page.partition('<select name="visibility"')[2].partition("</select>")[0]
        return next((value for value in ("private", "team") if f'value="{value}" selected' in select), "")

    assert chosen(alices, "kind=notebook&fresh=1") == "private"
    assert chosen(alices, "kind=job&fresh=1") == ""
    # A link cannot choose it; a copy of one's own keeps it; of another's not.
    assert chosen(alices, "kind=notebook&visibility=team") == "private"
    launch_actions.launch("team-a", LaunchSpec(**{**vars(notebook), "visibility": "team"}), by=by_alice)
    assert chosen(alices, "like=one") == "team"
    assert chosen(bobs, "like=one") == "private"
    assert chosen(alices, "kind=notebook") == "private"
    set_sharing("team-a", shares_notebooks=True, by=by_alice)
    assert chosen(bobs, "kind=notebook&fresh=1") == "team"


@pytest.mark.usefixtures("granted")
def test_the_form_sends_it(notebook: LaunchSpec, bobs: Client) -> None:
    typed = {"name": "mine", "gpu_class": notebook.gpu_class, "units": 1, "image": "minimal", "visibility": "team"}
    assert bobs.post("/teams/team-a/launch", {**typed, "kind": "notebook"}).status_code == 302
    assert Workload.objects.get().visibility == "team"


# ---- the API ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("granted")
def test_the_api_takes_and_shows_it(notebook: LaunchSpec, alice: User, bob: User) -> None:
    calls = WorkloadsCaller(bob, ["read", "launch"])
    body: dict[str, Any] = {"gpu_class": notebook.gpu_class, "image": "minimal"}
    assert calls("POST", "", {"name": "mine", **body}).json()["visibility"] == "private"
    assert calls("POST", "", {"name": "ours", **body, "visibility": "team"}).json()["visibility"] == "team"
    refused = calls("POST", "", {"name": "all", **body, "visibility": "everybody"})
    assert (refused.status_code, refused.json()["field"]) == (422, "visibility")
    changed = calls("POST", "/mine/visibility", {"visibility": "team"})
    assert (changed.status_code, changed.json()["visibility"]) == (200, "team")
    assert WorkloadsCaller(alice, ["launch"])("POST", "/mine/visibility", {"visibility": "private"}).status_code == 403
    job = {**body, "kind": "job", "image": "python"}
    assert calls("POST", "", {"name": "train", **job}).json()["visibility"] is None
    refused = calls("POST", "/train/visibility", {"visibility": "team"})
    assert (refused.status_code, refused.json()["code"]) == (409, "not_a_notebook")


# ---- the team's default ----------------------------------------------------------------------------------------------


def test_owners_choose_for_the_team(team_a: Tenant, alices: Client, bobs: Client, bob: User) -> None:
    page = alices.get("/teams/team-a/members").content.decode()
    assert "Share new notebooks with the team" in page
    for role in ("member", "manager"):
        Membership.objects.filter(user=bob).update(role=role)
        assert "Share new notebooks with the team" not in bobs.get("/teams/team-a/members").content.decode()
        assert bobs.post("/teams/team-a/sharing", {"shares_notebooks": "on"}).status_code == 403
    team_a.refresh_from_db()
    assert not team_a.shares_notebooks
    assert alices.post("/teams/team-a/sharing", {"shares_notebooks": "on"}).status_code == 302
    team_a.refresh_from_db()
    assert team_a.shares_notebooks
    assert alices.post("/teams/team-a/sharing", {}).status_code == 302
    verbs = Event.objects.filter(verb="tenant.sharing_set").order_by("id").values_list("after", flat=True)
    assert list(verbs) == [{"shares_notebooks": True}, {"shares_notebooks": False}]


def test_and_by_the_api(team_a: Tenant, alice: User) -> None:
    calls = WorkloadsCaller(alice, ["read", "admin"])
    client = Client(headers=calls.headers)
    body = json.dumps({"shares_notebooks": True})
    changed = client.patch("/api/v1/teams/team-a", body, content_type="application/json")
    assert (changed.status_code, changed.json()["shares_notebooks"]) == (200, True)
    assert client.get("/api/v1/teams/team-a").json()["shares_notebooks"] is True
