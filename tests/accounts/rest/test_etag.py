"""When two users change the same object, the second is refused: on every such object, also at the same moment."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor, system_actor
from accounts.models import Event, Role, User
from accounts.rest.etag import IF_MATCH_LIMIT, etag_of, match_refusal
from catalog.banner import actions as banner_actions
from catalog.models import Banner, GpuClass, Image
from portal.docs.contract import contract_text
from tenants.approvers import actions as approver_actions
from tenants.lifecycle import actions as lifecycle_actions
from tenants.members import actions as member_actions
from tenants.models import Membership, Namespace, QuotaLine, QuotaRequest
from tenants.requests import actions as tenants
from tenants.requests.decisions import actions as decision_actions
from tenants.requests.decisions.types import Decision
from tenants.requests.types import RequestedLine
from tests.support.http.callers import caller, told
from tests.support.rows import make
from workloads.launch import actions as workloads
from workloads.launch.types import LaunchSpec
from workloads.models import Workload

CHANGED = (412, "changed_meanwhile", None)


def by(user: User) -> Actor:
    return Actor(user=user, via="page")


# ---- If-Match header ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "current", "holds"),
    [
        ('"a"', '"a"', True),
        ('"b"', '"a"', False),
        ('"b", "a"', '"a"', True),
        ('"b","a" ,"c"', '"a"', True),
        ("*", '"a"', True),
        ("*", None, False),
        ('"a"', None, False),
        ('W/"a"', '"a"', False),
        ("a", '"a"', False),
        ("", '"a"', False),
        ('"*"', '"a"', False),
        ('"a",' * IF_MATCH_LIMIT, '"a"', False),
    ],
)
def test_what_matches(sent: str, current: str | None, *, holds: bool) -> None:
    assert (match_refusal(sent, current) is None) is holds


def test_a_tag_is_of_values_not_of_their_order() -> None:
    now = timezone.now().replace(microsecond=123_456)
    assert etag_of(1, {"a": 1, "b": now}) == etag_of(1, {"b": now, "a": 1})
    assert etag_of(now) != etag_of(now + timedelta(microseconds=1))
    assert etag_of("a", "b") != etag_of("ab")
    assert match_refusal(etag_of("x"), etag_of("x")) is None


# ---- resources with an ETag ---------------------------------------------------------------------------------------


@dataclass
class Thing:
    """An object that two users may change. `change`: the other user's change in between; the call must not undo it.
    `done` returns whether the call took effect.
    """

    client: Client
    read: str
    method: str
    path: str
    body: dict[str, Any] | None
    change: Callable[[], object]
    done: Callable[[], bool]

    def tag(self) -> str:
        answer = self.client.get(self.read)
        assert answer.status_code == 200, answer.content
        assert answer["ETag"].strip('"') == answer["ETag"][1:-1]
        return answer["ETag"]

    def send(self, sent: str | None = None) -> Any:
        headers = {} if sent is None else {"If-Match": sent}
        text = json.dumps(self.body or {})
        return self.client.generic(self.method, self.path, text, content_type="application/json", headers=headers)


JOB = {"kind": "job", "units": 1, "image": "PyTorch"}


def declared(user: User, gpu_class: GpuClass, units: int = 1, name: str = "nightly") -> object:
    return workloads.declare("team-a", LaunchSpec(name, "job", gpu_class.slug, units, "PyTorch"), by=by(user))


@pytest.fixture
def stage(namespace_a: Namespace, a100: GpuClass, alice: User) -> QuotaRequest:
    """A workload, a banner, a request with two lines."""
    banner_actions.put_banner(a100.cluster, text="First.", until=None, by=system_actor("stage"))
    Image.objects.create(name="PyTorch", reference="quay.io/jupyter/pytorch-notebook:2025", kind="job")
    make.grant(namespace_a.tenant, a100, units=4)
    declared(alice, a100)
    now = timezone.now()
    other = make.gpu_class(a100.cluster, slug=f"{a100.slug}-2", resource="nvidia.com/other")
    lines = [RequestedLine(one.slug, 8, now, now + timedelta(days=9)) for one in (a100, other)]
    return tenants.file_request("team-a", lines=lines, justification="x", by=by(alice))


@pytest.fixture
def things(
    stage: QuotaRequest, a100: GpuClass, alice: User, bob: User, dana: User, olga: User
) -> Callable[[str], Thing]:
    ada = make.user("Ada", roles=list(Role))
    cluster, namespace = a100.cluster, Namespace.objects.get()
    nightly, banner = "/api/v1/workloads/nightly", "/api/v1/cluster/banner"
    member, request = f"/api/v1/teams/team-a/members/{bob.pk}", f"/api/v1/requests/{stage.pk}"
    space, person = "/api/v1/teams/team-a/namespace", f"/api/v1/people/{dana.pk}"
    first, second = stage.lines.order_by("pk")
    denied = [Decision(first.pk, approve=False, reason="No.")]
    denial = {"lines": [{"id": second.pk, "approve": False, "reason": "No."}]}
    job = {**JOB, "gpu_class": a100.slug, "units": 3}

    def two_units() -> object:
        return declared(alice, a100, units=2)

    def says() -> object:
        return banner_actions.put_banner(cluster, text="Theirs.", until=None, by=by(olga))

    def manager() -> object:
        return member_actions.set_role("team-a", user_id=bob.pk, role="manager", by=by(alice))

    def suspend() -> object:
        return lifecycle_actions.set_namespace_state(namespace.pk, to="suspended", by=by(olga))

    def decide() -> object:
        return decision_actions.decide_request(stage.pk, denied, by=by(dana))

    def decides() -> object:
        return approver_actions.grant_class(dana.pk, a100.slug, by=by(ada))

    def roles() -> list[str]:
        return list(Membership.objects.filter(user=bob).values_list("role", flat=True))

    def is_deleted() -> bool:
        return Workload.objects.filter(delete_requested_at__isnull=False).exists()

    cases: dict[str, tuple[User, str, str, str, dict[str, Any] | None, Callable[[], object], Callable[[], bool]]] = {
        "workload": (alice, nightly, "PUT", nightly, job, two_units, lambda: Workload.objects.get().units == 3),
        "workload, deleted": (alice, nightly, "DELETE", nightly, None, two_units, is_deleted),
        "banner": (olga, banner, "PUT", banner, {"text": "Mine."}, says, lambda: Banner.objects.get().text == "Mine."),
        "banner, removed": (olga, banner, "DELETE", banner, None, says, lambda: not Banner.objects.exists()),
        "member": (alice, member, "PATCH", member, {"role": "viewer"}, manager, lambda: roles() == ["viewer"]),
        "member, removed": (alice, member, "DELETE", member, None, manager, lambda: roles() == []),
        "namespace": (
            olga,
            space,
            "PATCH",
            space,
            {"wanted": "active"},
            suspend,
            lambda: Namespace.objects.get().wanted == "active",
        ),
        "request": (
            dana,
            request,
            "POST",
            f"{request}/decide",
            denial,
            decide,
            lambda: QuotaLine.objects.get(pk=second.pk).state == "denied",
        ),
        "person": (
            ada,
            person,
            "PATCH",
            person,
            {"roles": []},
            decides,
            lambda: User.objects.get(pk=dana.pk).roles == [],
        ),
        "person, classes": (
            ada,
            person,
            "DELETE",
            f"{person}/approver-for-all",
            None,
            decides,
            lambda: not dana.approver_for.filter(gpu_class=None).exists(),
        ),
    }

    def thing(name: str) -> Thing:
        who, *rest = cases[name]
        return Thing(caller(who), *rest)

    return thing


NAMES = (
    "workload",
    "workload, deleted",
    "banner",
    "banner, removed",
    "member",
    "member, removed",
    "namespace",
    "request",
    "person",
    "person, classes",
)


@pytest.mark.parametrize("name", NAMES)
def test_what_somebody_changed_meanwhile_is_not_undone(things: Callable[[str], Thing], name: str) -> None:
    thing = things(name)
    read = thing.tag()
    assert thing.tag() == read
    thing.change()
    events = Event.objects.count()
    answer = thing.send(read)

    assert told(answer) == CHANGED
    assert not thing.done()
    assert Event.objects.count() == events
    assert thing.tag() != read
    assert thing.send(f'"older", {thing.tag()}').status_code < 300
    assert thing.done()


@pytest.mark.parametrize("name", NAMES)
def test_without_the_header_it_is_as_before(things: Callable[[str], Thing], name: str) -> None:
    thing = things(name)
    thing.change()
    assert thing.send().status_code < 300
    assert thing.done()


@pytest.mark.parametrize("name", NAMES)
def test_a_star_is_whatever_is_there(things: Callable[[str], Thing], name: str) -> None:
    thing = things(name)
    thing.change()
    assert thing.send("*").status_code < 300
    assert thing.done()


@pytest.mark.parametrize("name", ["workload", "banner", "member", "namespace", "person"])
def test_an_answer_has_the_next_tag(things: Callable[[str], Thing], name: str) -> None:
    thing = things(name)
    answer = thing.send(thing.tag())
    assert answer["ETag"] == thing.tag()


def test_what_is_only_shown_does_not_change_a_tag(things: Callable[[str], Thing], alice: User) -> None:
    thing = things("workload")
    read = thing.tag()
    workloads.start("team-a", "nightly", by=by(alice))
    assert thing.client.get(thing.read).json()["run"]["number"] == 1
    assert thing.tag() == read


def test_deleted_and_declared_again_is_another(
    things: Callable[[str], Thing], namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    thing = things("workload")
    read = thing.tag()
    Workload.objects.update(deleted_at=timezone.now())
    declared(alice, a100)
    assert told(thing.send(read)) == CHANGED


def test_where_nothing_is_no_tag_matches(things: Callable[[str], Thing]) -> None:
    other, banner = things("workload"), things("banner")
    other.path = "/api/v1/workloads/other"
    Banner.objects.all().delete()
    assert [told(one.send("*")) for one in (other, banner)] == [CHANGED, CHANGED]
    assert told(banner.client.get(banner.read)) == (404, "not_found", None)
    assert (Workload.objects.count(), Banner.objects.count()) == (1, 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_stranger_is_told_nothing_else(things: Callable[[str], Thing], charlie: User, name: str) -> None:
    thing = things(name)
    thing.client = caller(charlie)
    team = "?team=team-a" if "workloads" in thing.read else ""
    thing.path += team
    assert [thing.send(sent).status_code for sent in (None, "*", '"x"')] == [404, 404, 404]


# ---- concurrent writes ---------------------------------------------------------------------------------------------


@pytest.fixture
def on_thread() -> Iterator[Callable[[Callable[[], None]], threading.Thread]]:
    started: list[threading.Thread] = []

    def start(work: Callable[[], None]) -> threading.Thread:
        def whole() -> None:
            try:
                work()
            finally:
                connection.close()

        thread = threading.Thread(target=whole)
        thread.start()
        started.append(thread)
        return thread

    yield start
    for thread in started:
        thread.join(timeout=10)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", [name for name in NAMES if "," not in name])
def test_of_two_writers_one_wins(
    things: Callable[[str], Thing], on_thread: Callable[[Callable[[], None]], threading.Thread], name: str
) -> None:
    """The other user's change is not committed when the call compares: the call waits, and then sees the change."""
    thing = things(name)
    read, said = thing.tag(), []

    with transaction.atomic():
        thing.change()
        second = on_thread(lambda: said.append(told(thing.send(read))))
        # The thread cannot finish before this transaction ends.
        second.join(timeout=0.5)
        assert second.is_alive()
    second.join(timeout=10)

    assert said == [CHANGED]
    assert not thing.done()


# ---- OpenAPI contract ---------------------------------------------------------------------------------------------


def test_the_contract_says_where() -> None:
    found: dict[str, set[str]] = {"read": set(), "written": set()}
    for path, operations in json.loads(contract_text())["paths"].items():
        for method, operation in operations.items():
            if any(one["name"] == "If-Match" for one in operation.get("parameters", [])):
                found["written"].add(f"{method} {path}")
            elif method == "get" and any("ETag" in one.get("headers", {}) for one in operation["responses"].values()):
                found["read"].add(path)
    person = "/api/v1/people/{id}"
    assert found["read"] == {
        "/api/v1/openapi.json",
        "/api/v1/cluster/banner",
        person,
        "/api/v1/requests/{id}",
        "/api/v1/teams/{team}/members/{id}",
        "/api/v1/teams/{team}/namespace",
        "/api/v1/workloads/{name}",
    }
    assert found["written"] == {
        "put /api/v1/cluster/banner",
        "delete /api/v1/cluster/banner",
        f"patch {person}",
        f"put {person}/approver-for/{{slug}}",
        f"delete {person}/approver-for/{{slug}}",
        f"put {person}/approver-for-all",
        f"delete {person}/approver-for-all",
        "post /api/v1/requests/{id}/decide",
        "patch /api/v1/teams/{team}/members/{id}",
        "delete /api/v1/teams/{team}/members/{id}",
        "patch /api/v1/teams/{team}/namespace",
        "put /api/v1/registries/{host}",
        "put /api/v1/secrets/{name}",
        "put /api/v1/workloads/{name}",
        "delete /api/v1/workloads/{name}",
    }
