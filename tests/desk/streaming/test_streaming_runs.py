"""Calls that wait for a run end when that run ends, not another one, and at once if it can never start."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest
from django.utils import timezone

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.models import ApiToken, User
from catalog.models import GpuClass
from cluster.models import MirrorWorkload
from portal.core.hints import page_hint
from tenants.models import Namespace, Tenant
from tests.support.processes.streaming import Doors, database_connections
from tests.support.rows import mirrored, running
from tests.support.rows.waiting_runs import mirror_wait
from tests.support.waiting import wait_until
from workloads.models import Run, Workload
from workloads.runs import restart

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(240)]
NEVER = "insufficient quota for nvidia.com/gpu in flavor a100-1, request (9) > maximum capacity (4)"


@pytest.fixture
def one(namespace_a: Namespace, a100: GpuClass, granted: Tenant, alice: User) -> Workload:
    """A job of Alice whose first run is queued."""
    mirrored.hardware_seen(namespace_a.cluster)
    found = running.workload(namespace_a, a100, by=alice, kind="job")
    running.known(namespace_a.cluster_id)
    return found


class Waiting:
    """A call of Alice's script that waits in its own thread."""

    def __init__(self, doors: Doors, alice: User, path: str) -> None:
        _row, token = api_token_actions.create_token(
            name=path, scopes=["read"], expires_in_days=1, by=Actor(user=alice, via="page")
        )
        self._call = lambda: doors.get(f"/api/v1/workloads/one{path}", authorization=f"Bearer {token}")
        self.path = path
        self._thread = threading.Thread(target=self._run)
        self.began_at, self.took_s = time.monotonic(), 0.0
        self._thread.start()

    def _run(self) -> None:
        self.status, _headers, self.text = self._call()
        self.took_s = time.monotonic() - self.began_at

    def asked(self) -> None:
        """Returns when the call has presented its token."""
        wait_until(lambda: ApiToken.objects.filter(name=self.path, last_used_at__isnull=False).exists())

    def answer(self) -> dict[str, Any]:
        self._thread.join(20)
        assert self.status == 200
        found: dict[str, Any] = json.loads(self.text)
        return found


def end(number: int, namespace: Namespace, outcome: str) -> None:
    Run.objects.filter(number=number).update(ended_at=timezone.now(), outcome=outcome)
    page_hint(namespace.name)


def test_who_waits_for_the_second_run_is_not_told_of_the_end_of_the_first(
    doors: Doors, one: Workload, namespace_a: Namespace, alice: User
) -> None:
    restart.restart("team-a", "one", by=Actor(alice, via="page"))
    first = Waiting(doors, alice, "/runs/1?wait=15&until=finished")
    second = Waiting(doors, alice, "/runs/2?wait=15&until=finished")
    first.asked()
    second.asked()
    end(1, namespace_a, "stopped")
    assert first.answer()["outcome"] == "stopped"

    restart.start_pending(one)
    end(2, namespace_a, "succeeded")
    found = second.answer()
    assert (found["number"], found["outcome"], found["status"]["phase"]) == (2, "succeeded", "succeeded")
    assert (first.took_s < 12, second.took_s < 14) == (True, True)


def test_nobody_waits_for_a_run_to_become_ready_that_has_failed(
    doors: Doors, one: Workload, namespace_a: Namespace, alice: User
) -> None:
    end(1, namespace_a, "failed")
    for until in ("admitted", "ready", "finished"):
        waiting = Waiting(doors, alice, f"/runs/1?wait=15&until={until}")
        assert waiting.answer()["outcome"] == "failed"
        assert waiting.took_s < 5


def requests_nine_units(one: Workload) -> None:
    """More than its team is granted."""
    run = one.runs.get()
    one.runs.update(spec={**run.spec, "units": 9})


def test_what_can_never_start_is_told_at_once(doors: Doors, one: Workload, alice: User) -> None:
    requests_nine_units(one)
    mirror_wait(one, NEVER)
    for path in ("/runs/1?wait=15&until=finished", "?wait=15&until=ready"):
        waiting = Waiting(doors, alice, path)
        assert waiting.answer()["status"]["verdict"] == "never"
        assert waiting.took_s < 5


def test_what_turns_out_never_to_start_ends_the_wait(doors: Doors, one: Workload, alice: User) -> None:
    requests_nine_units(one)
    mirror_wait(one, "couldn't assign flavors")
    waiting = Waiting(doors, alice, "/runs/1?wait=18&until=finished")
    waiting.asked()
    # Its first look is over; a change between two queries of that look would also end the wait.
    wait_until(lambda: database_connections() == 0, what="nobody looks")
    queued = MirrorWorkload.objects.get()
    queued.record["conditions"][0]["message"] = NEVER
    queued.save()
    page_hint(one.namespace.name)
    assert waiting.answer()["status"]["verdict"] == "never"
    assert waiting.took_s < 14
