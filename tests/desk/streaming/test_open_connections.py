"""How many streams may be open: of a token, of a person, of a process; and when they return."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from accounts.events import stream
from desk.streaming import open_connections
from desk.streaming.open_connections import OF_PERSON, OPEN_LIMIT, OpenConnections
from portal.core.errors import Refused
from portal.live import sse
from workloads.gateway.stream_access import StreamViewer


def viewer(person: int, session: int = 0) -> StreamViewer:
    return StreamViewer(person, "team-a", session_key=f"session-{person}-{session}")


def opened(connections: OpenConnections, held: ExitStack, number: int, of: StreamViewer) -> None:
    for _ in range(number):
        held.enter_context(connections.one(of))


def test_many_sessions_are_no_way_around_the_limit_of_a_person() -> None:
    connections = OpenConnections()
    with ExitStack() as held:
        for session in range(OF_PERSON // OPEN_LIMIT):
            opened(connections, held, OPEN_LIMIT, viewer(1, session))
        with pytest.raises(Refused) as refused:
            held.enter_context(connections.one(viewer(1, 9)))
        assert (refused.value.code, refused.value.refusal.status) == ("too_many_open", 429)
        opened(connections, held, 1, viewer(2))
    # All places are free again.
    with ExitStack() as held:
        opened(connections, held, OPEN_LIMIT, viewer(1))
    assert (connections._of_credential, connections._of_person) == ({}, {})


def test_a_full_process_says_when_to_return(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_connections, "OF_PROCESS", 3)
    connections = OpenConnections()
    with ExitStack() as held:
        for person in range(3):
            opened(connections, held, 1, viewer(person))
        with pytest.raises(Refused) as refused:
            held.enter_context(connections.one(viewer(9)))
    refusal = refused.value.refusal
    assert (refusal.code, refusal.status) == ("overloaded", 503)
    assert f"Try again in {refusal.retry_after_s} s" in refusal.message
    assert 5 <= (refusal.retry_after_s or 0) <= 30


def test_who_was_refused_by_a_rush_returns_as_soon_as_after_a_restart() -> None:
    seconds = {open_connections.busy().retry_after_s for _ in range(500)}
    assert seconds == {*range(2, 13)}


@pytest.mark.parametrize("field", [sse.retry_field, lambda: stream.position_text(7).split(b"id:")[0]])
def test_streams_that_end_together_return_at_different_times(field: object) -> None:
    assert callable(field)
    seconds = [int(field().split()[1]) / 1000 for _ in range(5000)]
    assert min(seconds) >= 2
    assert max(seconds) <= 12
    busiest = max(sum(1 for one in seconds if second <= one < second + 1) for second in range(2, 12))
    assert busiest < 700, "5,000 streams are spread over ten seconds"
