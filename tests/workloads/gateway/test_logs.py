"""Logs, which the doors process reads from the real API server under its own identity."""

from __future__ import annotations

import time

import pytest

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from tenants.members import actions as member_actions
from tenants.models import Tenant
from tests.support.cluster.worker import Worker
from tests.support.processes.streaming import BUSY_S, PROMISED_S, Doors, Stream, session_of
from tests.support.waiting import wait_until
from workloads.gateway.followers import OF_PERSON_MAX
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("provisioned", "watcher")]


@pytest.fixture
def bearer(by_bob: Actor) -> str:
    _row, text = api_token_actions.create_token(name="ci", scopes=["read"], expires_in_days=1, by=by_bob)
    return f"Bearer {text}"


def test_members_read_the_log_of_a_notebook_and_it_is_never_a_page(
    granted: Tenant, notebook: LaunchSpec, by_alice: Actor, by_bob: Actor, worker: Worker, doors: Doors, bearer: str
) -> None:
    actions.launch("team-a", notebook, by=by_alice)
    _status, headers, early = doors.get("/live/logs/team-a/one?follow=0", authorization=bearer)
    assert b"There is no log: the pod has not started yet" in early
    assert headers["retry-after"] == "5"  # a program tells this answer from a log by this header

    worker(lambda: Run.objects.get().ready_at, within_s=60)
    # The server answers before its output has reached the file that the kubelet reads.
    status, headers, _text = wait_until(
        lambda: (
            (told := doors.get("/live/logs/team-a/one?follow=0", authorization=bearer))
            and (told if b"Jupyter Server" in told[2] else None)
        )
    )
    assert status == 200
    assert headers["content-type"] == "text/plain; charset=utf-8"
    assert headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert "retry-after" not in headers

    _status, headers, fragment = doors.get("/live/logs/team-a/one", authorization=bearer, hx_request="true")
    assert headers["content-type"].startswith("text/html")
    assert fragment.startswith(b'<pre class="term')
    assert doors.get("/live/logs/team-a/another", authorization=bearer)[0] == 404

    # Fifty followers of one person, in several sessions, leave others theirs.
    sessions = [session_of(by_bob.person) for _ in range(5)]
    many = [Stream(doors, "/live/logs/team-a/one", sessions[number % 5]) for number in range(50)]
    try:
        found = [stream.response.status for stream in many]
        assert (found.count(200), found.count(429)) == (OF_PERSON_MAX, 50 - OF_PERSON_MAX)
        for _ in range(OF_PERSON_MAX):
            hers = Stream(doors, "/live/logs/team-a/one", session_of(by_alice.person))
            many.append(hers)
            assert hers.response.status == 200
        assert wait_until(lambda: many[-1].has("Jupyter Server"))
    finally:
        for stream in many:
            stream.close()

    # A user who follows the log is disconnected on losing the right to read it.
    hers, his = (Stream(doors, "/live/logs/team-a/one", session_of(who)) for who in (by_alice.person, by_bob.person))
    try:
        wait_until(lambda: hers.has("Jupyter Server") and his.has("Jupyter Server"))
        assert his.ended_at is None
        member_actions.remove_member("team-a", user_id=by_bob.person.pk, by=by_alice)
        lost_at = time.monotonic()
        ended_at = wait_until(lambda: his.ended_at, within_s=30)
        assert ended_at is not None
        assert ended_at - lost_at <= PROMISED_S + BUSY_S
        assert hers.ended_at is None
    finally:
        hers.close()
        his.close()
