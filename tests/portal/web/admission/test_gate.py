"""Which requests run, wait or are refused in one process."""

from __future__ import annotations

import random
import re
import threading
import time
from pathlib import Path

import pytest
from django.urls import get_resolver

from portal.web.admission import gate as gates
from portal.web.admission import kinds
from portal.web.admission.gate import BOUNDS, GROUP_OF, GROUPS, LENT, OF_GROUP, RUNNING, THREADS, Gate
from portal.web.admission.kinds import Kind, kind_of
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[4]


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Nobody waits for a second in these tests."""
    short = {kind: gates.Bounds(of.running, of.waiting, 0.05, of.of_caller) for kind, of in BOUNDS.items()}
    monkeypatch.setattr(gates, "BOUNDS", short)
    return Gate()


def fill(gate: Gate, kind: Kind) -> None:
    for number in range(BOUNDS[kind].running):
        assert gate.enter(kind, f"caller {number}") is None


def in_thread(gate: Gate, kind: Kind, caller: str, order: list[str]) -> threading.Thread:
    def enter() -> None:
        order.append(caller if gate.enter(kind, caller) is None else f"{caller} refused")

    thread = threading.Thread(target=enter)
    thread.start()
    return thread


def waiting(gate: Gate, kind: Kind) -> int:
    return len(gate._waiting[kind])


@pytest.mark.parametrize("kind", [Kind.FIRST, Kind.SIGN_IN])
def test_what_goes_first_runs_at_once_while_lists_and_pages_are_full(gate: Gate, kind: Kind) -> None:
    fill(gate, Kind.USUAL)

    assert gate.enter(kind, "alice") is None


def test_a_rush_of_launches_leaves_room_for_pages_and_is_served_before_them() -> None:
    gate, order = Gate(), list[str]()
    fill(gate, Kind.CHANGE)
    for number in range(OF_GROUP + LENT - BOUNDS[Kind.CHANGE].running):
        assert gate.enter(Kind.USUAL, f"page {number}") is None
    threads = [in_thread(gate, Kind.USUAL, "page", order)]
    wait_until(lambda: waiting(gate, Kind.USUAL) == 1)
    threads.append(in_thread(gate, Kind.CHANGE, "launch", order))
    wait_until(lambda: waiting(gate, Kind.CHANGE) == 1)
    gate.leave(Kind.CHANGE, "caller 0")
    threads[1].join()
    gate.leave(Kind.USUAL, "page 0")
    threads[0].join()

    assert order == ["launch", "page"]


def test_lists_leave_room_for_other_pages(gate: Gate) -> None:
    fill(gate, Kind.COSTLY)
    refused = gate.enter(Kind.COSTLY, "alice")

    assert refused is not None
    assert (refused.code, refused.status) == ("overloaded", 503)
    assert 2 <= (refused.retry_after_s or 0) <= 6
    assert gate.enter(Kind.USUAL, "alice") is None


def test_pages_give_back_what_was_lent_to_them() -> None:
    """Pages have six slots of eight while nobody wants to stop a run, and four as soon as somebody waits for it."""
    gate, order = Gate(), list[str]()
    fill(gate, Kind.USUAL)
    for number in range(RUNNING - BOUNDS[Kind.USUAL].running):
        assert gate.enter(Kind.FIRST, f"running {number}") is None
    threads = [in_thread(gate, Kind.USUAL, "page", order)]
    threads += [in_thread(gate, Kind.FIRST, "stop", order) for _ in range(3)]
    wait_until(lambda: (waiting(gate, Kind.USUAL), waiting(gate, Kind.FIRST)) == (1, 3))
    for ended, expected in enumerate(["stop", "stop", "page"]):
        gate.leave(Kind.USUAL, f"caller {ended}")
        wait_until(lambda ended=ended: len(order) == ended + 1)
        assert order[-1] == expected
    assert (gate._running[Kind.FIRST], gate._running[Kind.USUAL]) == (OF_GROUP, OF_GROUP)
    gate.leave(Kind.FIRST, "stop")
    for thread in threads:
        thread.join()

    assert order[-1] == "stop"


def test_sign_ins_do_not_fill_what_stops_a_run(gate: Gate) -> None:
    """Checking a password takes the processor a tenth of a second, and needs no account."""
    fill(gate, Kind.SIGN_IN)

    assert gate.enter(Kind.SIGN_IN, "") is not None
    assert gate.enter(Kind.FIRST, "alice") is None


def test_the_limit_of_one_caller_does_not_reach_another() -> None:
    """Nor does one caller alone fill the process: the limit counts what waits as well."""
    gate = Gate()
    for _ in range(BOUNDS[Kind.COSTLY].running):
        assert gate.enter(Kind.COSTLY, "mallory") is None
    of_caller = BOUNDS[Kind.COSTLY].of_caller
    assert of_caller is not None
    threads = [in_thread(gate, Kind.COSTLY, "mallory", []) for _ in range(of_caller - BOUNDS[Kind.COSTLY].running)]
    wait_until(lambda: waiting(gate, Kind.COSTLY) == len(threads))
    refused = gate.enter(Kind.COSTLY, "mallory")

    assert refused is not None
    assert (refused.code, refused.status, refused.retry_after_s) == ("too_many_requests", 429, 2)
    threads.append(in_thread(gate, Kind.COSTLY, "alice", order := list[str]()))
    wait_until(lambda: waiting(gate, Kind.COSTLY) == len(threads))
    gate.leave(Kind.COSTLY, "mallory")
    gate.leave(Kind.COSTLY, "mallory")
    wait_until(lambda: "alice" in order)
    for thread in threads[:-1]:
        gate.leave(Kind.COSTLY, "mallory")
        thread.join()


def test_pages_and_lists_that_wait_go_on_by_age_when_another_has_ended() -> None:
    gate, order = Gate(), list[str]()
    fill(gate, Kind.USUAL)
    threads = [in_thread(gate, Kind.COSTLY, "list", order)]
    wait_until(lambda: waiting(gate, Kind.COSTLY) == 1)
    threads.append(in_thread(gate, Kind.USUAL, "page", order))
    wait_until(lambda: waiting(gate, Kind.USUAL) == 1)

    gate.leave(Kind.USUAL, "caller 0")
    wait_until(lambda: order == ["list"])
    gate.leave(Kind.USUAL, "caller 1")
    for thread in threads:
        thread.join()

    assert order == ["list", "page"]


def test_the_first_list_of_a_person_comes_before_the_second_of_another() -> None:
    """A browser that starts again asks for all its tabs at once: they wait, and nobody else waits for them."""
    gate, order = Gate(), list[str]()
    for _ in range(BOUNDS[Kind.COSTLY].running):
        assert gate.enter(Kind.COSTLY, "tabs") is None
    threads = []
    for number, caller in enumerate(["tabs", "tabs", "alice"], start=1):
        threads.append(in_thread(gate, Kind.COSTLY, caller, order))
        wait_until(lambda number=number: waiting(gate, Kind.COSTLY) == number)

    gate.leave(Kind.COSTLY, "tabs")
    wait_until(lambda: order == ["alice"])
    gate.leave(Kind.COSTLY, "tabs")
    gate.leave(Kind.COSTLY, "alice")
    for thread in threads:
        thread.join()

    assert order == ["alice", "tabs", "tabs"]


def test_more_than_may_wait_are_refused_at_once(gate: Gate) -> None:
    fill(gate, Kind.COSTLY)
    order = list[str]()
    threads = [in_thread(gate, Kind.COSTLY, f"w{number}", order) for number in range(BOUNDS[Kind.COSTLY].waiting)]
    for thread in threads:
        thread.join()

    # They gave up, nobody waits any more, and nothing is left behind.
    assert all(one.endswith("refused") for one in order)
    assert (waiting(gate, Kind.COSTLY), sum(gate._of_caller.values())) == (0, BOUNDS[Kind.COSTLY].running)

    gate._waiting[Kind.COSTLY].extend(
        gates._Waiting(f"other {number}", number) for number in range(BOUNDS[Kind.COSTLY].waiting)
    )
    began = time.monotonic()
    assert gate.enter(Kind.COSTLY, "late") is not None
    assert time.monotonic() - began < 0.04


def test_after_any_rush_every_slot_is_free_again(gate: Gate) -> None:
    most: dict[str, int] = {}

    def rush(seed: int) -> None:
        dice = random.Random(seed)
        for _ in range(60):
            kind, caller = dice.choice(list(Kind)), f"caller {dice.randrange(6)}"
            if gate.enter(kind, caller) is None:
                group = GROUP_OF[kind]
                most[str(group)] = max(most.get(str(group), 0), sum(gate._running[one] for one in group))
                most["all"] = max(most.get("all", 0), sum(gate._running.values()))
                most[kind] = max(most.get(kind, 0), gate._running[kind])
                time.sleep(dice.random() / 500)
                gate.leave(kind, caller)

    threads = [threading.Thread(target=rush, args=(seed,)) for seed in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most["all"] <= RUNNING
    assert all(most[str(group)] <= OF_GROUP + LENT for group in GROUPS)
    assert all(most[kind] <= BOUNDS[kind].running for kind in Kind)
    assert not +gate._running
    assert not gate._of_caller
    assert not any(gate._waiting.values())


# ---- what the numbers and names have to agree with -----------------------------------------------------------------


@pytest.mark.parametrize(
    "file", ["deploy/portal/web.yaml", "docker-compose.yml", "Dockerfile", "devcluster/services/portal.py"]
)
def test_web_has_a_thread_for_each_request_that_may_wait(file: str) -> None:
    found = re.findall(r'--threads"?, "(\d+)"', (ROOT / file).read_text())
    assert [int(number) for number in found] == [THREADS]


def test_what_runs_at_once_has_a_connection_to_the_database() -> None:
    pool = re.search(r'"DATABASE_POOL_SIZE", default=(\d+)', (ROOT / "portal/settings.py").read_text())
    assert pool is not None
    assert int(pool[1]) >= RUNNING


def test_every_named_route_exists_and_has_one_kind() -> None:
    known = {name for name in get_resolver().reverse_dict if isinstance(name, str)}
    named = [*kinds.SIGN_IN, *kinds.FIRST, *kinds.COSTLY]
    assert len(named) == len(set(named))
    assert set(named) <= known


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("POST", "/login", Kind.SIGN_IN),
        ("GET", "/", Kind.FIRST),
        ("GET", "/teams/team-a", Kind.FIRST),
        ("POST", "/teams/team-a/workloads/nb/stop", Kind.FIRST),
        ("POST", "/api/v1/workloads/nb/stop", Kind.FIRST),
        ("POST", "/requests/7/decide", Kind.FIRST),
        ("POST", "/api/v1/requests/7/decide", Kind.FIRST),
        ("GET", "/api/v1/workloads", Kind.COSTLY),
        ("POST", "/api/v1/workloads", Kind.CHANGE),
        ("POST", "/teams/team-a/launch", Kind.CHANGE),
        ("GET", "/operators/usage.csv", Kind.COSTLY),
        ("GET", "/teams/team-a/launch", Kind.USUAL),
        ("GET", "/nowhere", Kind.USUAL),
    ],
)
def test_a_request_has_the_kind_of_its_route(method: str, path: str, kind: Kind) -> None:
    assert kind_of(path, method) is kind


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("POST", "/teams/team-a/launch", Kind.USUAL),
        ("GET", "/teams/team-a/workloads/nb/actions", Kind.USUAL),
        ("GET", "/queue", Kind.COSTLY),
        ("POST", "/login", Kind.SIGN_IN),
    ],
)
def test_a_part_of_a_page_takes_no_place_of_what_people_wait_for(method: str, path: str, kind: Kind) -> None:
    assert kind_of(path, method, is_fragment=True) is kind
