"""A user who loses the right to watch is disconnected within five seconds: every stream × every way to lose it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import Client

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.models import Role, User
from accounts.people import actions as people_actions
from catalog.models import GpuClass
from tenants.members import actions as member_actions
from tenants.models import Membership, Namespace
from tests.support.processes.streaming import BUSY_S, PROMISED_S, Doors, Stream, session_of
from tests.support.rows import make, running
from tests.support.waiting import wait_until
from workloads.models import Workload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(240)]


@dataclass
class Call:
    """A waiting call in its own thread, with its answer and the time of the answer."""

    doors: Doors
    path: str
    headers: dict[str, str]
    status: int = 0
    body: bytes = b""
    ended_at: float | None = None
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        self.status, _headers, self.body = self.doors.get(self.path, **self.headers)
        self.ended_at = time.monotonic()


@dataclass
class Watches:
    """One user with all streams open; `ends` removes the right, `answers` is the status of the waiting call."""

    ends: Callable[[], Any]
    answers: int
    streams: list[Stream]
    call: Call
    ended_at: float = 0.0

    def late_s(self) -> list[float]:
        ends = [*(one.ended_at for one in self.streams), self.call.ended_at]
        return [at - self.ended_at for at in ends if at is not None]


@pytest.fixture
def watched(namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    found = running.workload(namespace_a, a100, name="one", by=alice)
    running.known(namespace_a.cluster_id)
    return found


@pytest.fixture
def watch(doors: Doors, namespace_a: Namespace) -> Iterator[Callable[..., Watches]]:
    opened: list[Stream] = []

    def by(ends: Callable[[], Any], answers: int, *, session: str = "", bearer: str = "") -> Watches:
        paths = (f"/live/{namespace_a.name}", f"/live/{namespace_a.name}?workload=one")
        streams = [Stream(doors, path, session, bearer) for path in paths]
        opened.extend(streams)
        headers = {"cookie": f"session={session}"} if session else {"authorization": f"Bearer {bearer}"}
        call = Call(doors, "/api/v1/workloads/one?team=team-a&wait=60&until=ready", headers)
        return Watches(ends, answers, streams, call)

    yield by
    for stream in opened:
        stream.close()


def test_every_stream_ends_with_the_right_to_it(
    watched: Workload, namespace_a: Namespace, alice: User, bob: User, olga: User, watch: Callable[..., Watches]
) -> None:
    by_alice, by_olga = Actor(alice, "page"), Actor(olga, "page")
    team, cast = namespace_a.tenant, {name: make.user(name) for name in ("Cara", "Dan", "Eve", "Fay", "Gus")}
    for one in cast.values():
        make.member(team, one, Membership.Role.VIEWER)
    audra, nora = make.user("Audra", roles=[Role.AUDITOR]), make.user("Nora", roles=[Role.AUDITOR])
    token, text = api_token_actions.create_token(
        name="ci", scopes=["read"], expires_in_days=1, by=Actor(cast["Fay"], "page")
    )
    leaving = Client()
    leaving.force_login(cast["Dan"])

    def changes_password() -> None:
        cast["Eve"].set_password("another one")
        cast["Eve"].save()

    lost = {
        "removed": watch(
            lambda: member_actions.remove_member("team-a", user_id=bob.pk, by=by_alice), 404, session=session_of(bob)
        ),
        "left": watch(
            lambda: member_actions.remove_member("team-a", user_id=cast["Gus"].pk, by=Actor(cast["Gus"], "page")),
            404,
            session=session_of(cast["Gus"]),
        ),
        "suspended": watch(
            lambda: people_actions.suspend_user(cast["Cara"].pk, because="left", by=by_olga),
            401,
            session=session_of(cast["Cara"]),
        ),
        "signed out": watch(lambda: leaving.post("/logout"), 401, session=str(leaving.cookies["session"].value)),
        "new password": watch(changes_password, 401, session=session_of(cast["Eve"])),
        "token revoked": watch(
            lambda: api_token_actions.revoke_token(token.prefix, by=Actor(cast["Fay"], "page")), 401, bearer=text
        ),
        "role taken": watch(lambda: people_actions.set_roles(audra.pk, [], by=by_olga), 404, session=session_of(audra)),
    }
    kept = [
        watch(lambda: None, 0, session=session_of(alice)),
        watch(lambda: None, 0, session=session_of(nora)),
    ]
    everybody = [*lost.values(), *kept]
    wait_until(
        lambda: all(
            one.streams[0].has("event: state_running") and one.streams[1].has("event: state_workload")
            for one in everybody
        )
    )
    assert all(one.call.ended_at is None for one in everybody)

    for one in lost.values():
        one.ends()
        one.ended_at = time.monotonic()
    wait_until(lambda: all(len(one.late_s()) == 3 for one in lost.values()), within_s=30)

    late = {how: [round(seconds, 1) for seconds in one.late_s()] for how, one in lost.items()}
    assert all(seconds <= PROMISED_S + BUSY_S for each in late.values() for seconds in each), late
    assert {how: one.call.status for how, one in lost.items()} == {how: one.answers for how, one in lost.items()}
    assert all(b'"phase"' not in one.call.body for one in lost.values()), "nothing of the team is in the refusal"
    for one in kept:
        assert [stream.ended_at for stream in one.streams] == [None, None]
        assert one.call.ended_at is None
    # Calls that still wait would keep the process alive until their timeout.
    running.make_ready(watched)
    wait_until(lambda: all(one.call.status == 200 for one in kept), within_s=30)
