"""The watch against an API server that shows every known fault of a real one."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cluster.mirror.records.kinds import KINDS
from cluster.mirror.watch import WatchLimits, WatchNote, follow_kind
from tests.cluster.mirror.scripted_api import (
    Answer,
    ScriptedApi,
    added,
    bookmark,
    deleted,
    drop,
    expired,
    garbage,
    listing,
    modified,
    pod,
    silent,
)

QUICK = WatchLimits(silence_s=0.3, page=2, first_wait_s=0.02, longest_wait_s=0.1)
pytestmark = pytest.mark.timeout(20)


@pytest.fixture
def api() -> Iterator[ScriptedApi]:
    found = ScriptedApi()
    yield found
    found.close()


class Following:
    """Follows one kind note by note; `until` returns the notes as words, up to and including the given one."""

    def __init__(self, api: ScriptedApi, directory: Path, limits: WatchLimits, kind: str = "Pod") -> None:
        self.stopped = threading.Event()
        self._notes: Generator[WatchNote, None, None] = follow_kind(
            api.client(directory), KINDS[kind], pause=self.stopped.wait, limits=limits
        )

    def until(self, last: str) -> list[str]:
        words: list[str] = []
        for note in self._notes:
            words.append(_word(note))
            if words[-1] == last:
                return words
        return [*words, "the end"]

    def rest(self) -> list[str]:
        return [_word(note) for note in self._notes]

    def close(self) -> None:
        self.stopped.set()
        self._notes.close()


def _word(note: WatchNote) -> str:
    if note.raw is not None:
        return f"{note.what} {note.raw['metadata']['name']}@{note.raw['metadata']['resourceVersion']}"
    return f"{note.what} {note.resource_version}".strip()


@pytest.fixture
def following(api: ScriptedApi, tmp_path: Path) -> Iterator[Following]:
    found = Following(api, tmp_path, QUICK)
    yield found
    found.close()


def test_a_list_in_pages_then_a_watch_from_there(api: ScriptedApi, following: Following) -> None:
    api.lists.extend([listing(10, pod("a", 3), pod("b", 4), more="next"), listing(10, pod("c", 5))])
    api.watches.append([added(pod("d", 11)), modified(pod("a", 12)), deleted(pod("b", 13)), silent])

    assert following.until("removed b@13") == [
        "listing 10", "seen a@3", "seen b@4", "seen c@5", "listed 10", "seen d@11", "seen a@12", "removed b@13"
    ]  # fmt: skip
    assert api.watched_from == ["10"]
    assert [query.get("continue") for _path, query in api.asked[:2]] == [None, "next"]


def test_bookmarks_carry_the_version_over_to_the_next_connection(api: ScriptedApi, following: Following) -> None:
    api.lists.append(listing(10))
    api.watches.extend([[bookmark(20), bookmark(30)], [bookmark(40), silent]])

    assert following.until("heard 40") == ["listing 10", "listed 10", "heard 20", "heard 30", "heard 30", "heard 40"]
    assert api.watched_from == ["10", "30"]
    assert api.full_lists == 1


def test_a_regular_end_is_a_sign_of_life_although_no_bookmark_came(api: ScriptedApi, following: Following) -> None:
    """A real server often ends a quiet watch before its bookmark is due."""
    api.lists.append(listing(10))
    api.watches.extend([[], [added(pod("a", 11))], [bookmark(20), silent]])

    words = following.until("heard 20")
    assert words == ["listing 10", "listed 10", "heard 10", "seen a@11", "heard 11", "heard 20"]
    assert api.watched_from == ["10", "10", "11"]


def test_a_version_that_is_too_old_lists_again(api: ScriptedApi, following: Following) -> None:
    api.lists.extend([listing(10, pod("a", 3)), listing(50, pod("b", 44))])
    api.watches.extend([[modified(pod("a", 12)), expired()], [added(pod("c", 51)), silent]])

    words = following.until("seen c@51")
    assert words == [
        "listing 10", "seen a@3", "listed 10", "seen a@12",
        "trouble", "listing 50", "seen b@44", "listed 50", "seen c@51",
    ]  # fmt: skip
    assert api.watched_from == ["10", "50"]


def test_a_watch_refused_as_gone_lists_again(api: ScriptedApi, following: Following) -> None:
    api.lists.extend([listing(10), listing(50)])
    api.watches.extend([410, [bookmark(60), silent]])

    assert following.until("heard 60") == ["listing 10", "listed 10", "trouble", "listing 50", "listed 50", "heard 60"]


def test_an_expired_list_begins_again(api: ScriptedApi, following: Following) -> None:
    api.lists.extend([listing(10, pod("a", 3), more="next"), 410, listing(50, pod("b", 44))])
    api.watches.append([bookmark(51), silent])

    words = following.until("heard 51")
    assert words == ["listing 10", "seen a@3", "trouble", "listing 50", "seen b@44", "listed 50", "heard 51"]


def test_a_kind_without_bookmarks_goes_on_from_where_the_server_was(api: ScriptedApi, tmp_path: Path) -> None:
    """Events come without bookmarks. When a watch ends normally, all up to the version at its start has arrived."""
    following = Following(api, tmp_path, QUICK, "Event")
    api.lists.append(listing(10))
    api.heads.extend([15, 20, 25, 30])
    api.watches.extend([[], [drop], [silent]])

    assert following.until("heard 15") == ["listing 10", "listed 10", "heard 15"]
    following.until("heard")
    following.until("heard")
    following.close()
    assert api.watched_from == ["10", "15", "15"], "a watch that broke off may have told nothing"
    assert {query["timeoutSeconds"] for _path, query in api.asked if "watch" in query} == {"30"}
    assert api.full_lists == 1


def test_silence_is_noticed_and_the_watch_opened_again(api: ScriptedApi, following: Following) -> None:
    api.lists.append(listing(10))
    api.watches.extend([[added(pod("a", 11)), silent], [added(pod("b", 12)), silent]])

    words = following.until("seen b@12")
    # The server answers requests, so a silent watch is no trouble.
    assert words == ["listing 10", "listed 10", "seen a@11", "heard", "seen b@12"]
    assert api.watched_from == ["10", "11"]
    assert api.full_lists == 1


def test_a_kind_without_bookmarks_is_quiet_and_not_in_trouble(api: ScriptedApi, following: Following) -> None:
    api.lists.append(listing(10))
    api.watches.extend([[silent], [silent], [silent], [added(pod("a", 11)), silent]])

    assert following.until("seen a@11") == ["listing 10", "listed 10", "heard", "heard", "heard", "seen a@11"]
    assert api.full_lists == 1


def test_silence_of_a_server_that_is_gone_is_trouble(api: ScriptedApi, following: Following) -> None:
    api.lists.extend([listing(10), 503])
    api.watches.append([added(pod("a", 11)), silent])

    assert following.until("trouble") == ["listing 10", "listed 10", "seen a@11", "trouble"]


def test_bookmarks_alone_keep_a_watch_open(api: ScriptedApi, following: Following) -> None:
    def bookmarks(answer: Answer) -> None:
        # Together they take longer than the limit of silence.
        for version in range(20, 26):
            threading.Event().wait(0.1)
            answer.send(json.dumps(bookmark(version)).encode() + b"\n")

    api.lists.append(listing(10))
    api.watches.append([bookmarks, silent])

    words = following.until("heard 25")
    assert "trouble" not in words
    assert api.watched_from == ["10"]


def test_a_broken_connection_goes_on_where_it_was(api: ScriptedApi, following: Following) -> None:
    api.lists.append(listing(10))
    api.watches.extend([[added(pod("a", 11)), drop], [added(pod("b", 12)), silent]])

    assert following.until("seen b@12")[-2:] == ["heard", "seen b@12"]
    assert api.watched_from == ["10", "11"]
    assert api.full_lists == 1


def test_a_repeated_or_late_event_does_not_turn_the_clock_back(api: ScriptedApi, following: Following) -> None:
    api.lists.append(listing(10))
    late = [modified(pod("a", 15)), modified(pod("a", 15)), modified(pod("a", 12))]
    api.watches.extend([late, [bookmark(20), silent]])

    following.until("heard 20")
    assert api.watched_from == ["10", "15"]


def test_what_cannot_be_read_is_trouble_and_not_the_end(api: ScriptedApi, following: Following) -> None:
    api.lists.append(listing(10))
    api.watches.extend([[garbage], [garbage], [added(pod("a", 11)), silent]])

    words = following.until("seen a@11")
    assert words == ["listing 10", "listed 10", "heard", "trouble", "heard", "seen a@11"]


@pytest.mark.parametrize("status", [403, 404, 500, 503])
def test_a_refused_list_is_said_aloud_and_tried_again(api: ScriptedApi, following: Following, status: int) -> None:
    api.lists.extend([status, status, listing(10, pod("a", 3))])

    assert following.until("listed 10") == ["trouble", "trouble", "listing 10", "seen a@3", "listed 10"]


def test_a_refused_watch_is_asked_for_again_with_patience(api: ScriptedApi, following: Following) -> None:
    api.lists.append(listing(10))
    api.watches.extend([503, 503, [bookmark(11), silent]])

    assert following.until("heard 11")[-1] == "heard 11"
    assert api.watched_from == ["10", "10", "10"]
    assert api.full_lists == 1


def test_an_unknown_kind_of_event_is_passed_over(api: ScriptedApi, following: Following) -> None:
    api.lists.append(listing(10))
    api.watches.append([{"type": "SURPRISE", "object": {}}, bookmark(11), silent])

    assert following.until("heard 11") == ["listing 10", "listed 10", "heard 11"]


def test_the_whole_list_is_compared_now_and_then(api: ScriptedApi, tmp_path: Path) -> None:
    api.lists.extend([listing(10, pod("a", 3)), listing(50)])
    api.watches.extend([[bookmark(11)] * 3, [bookmark(51), silent]])
    following = Following(api, tmp_path, WatchLimits(silence_s=5, first_wait_s=0.02, compare_every_s=0.0001))

    words = following.until("listing 50")
    following.close()
    assert words[:3] == ["listing 10", "seen a@3", "listed 10"]


def test_it_ends_when_told_to(api: ScriptedApi, following: Following) -> None:
    api.lists.append(503)
    assert following.until("trouble") == ["trouble"]

    following.stopped.set()
    assert following.rest() == []


# ---- a kind that not every cluster serves ------------------------------------------------------------------------


@pytest.fixture
def optional(api: ScriptedApi, tmp_path: Path) -> Iterator[Following]:
    found = Following(api, tmp_path, replace(QUICK, quiet_s=0.05), "NodePool")
    yield found
    found.close()


def test_of_a_kind_that_is_not_installed_there_are_none(api: ScriptedApi, optional: Following) -> None:
    api.lists.extend([404, 404, listing(10, pod("a", 3))])
    api.watches.append([added(pod("b", 11)), silent])

    assert optional.until("seen b@11") == [
        "listing", "listed", "listing", "listed", "listing 10", "seen a@3", "listed 10", "seen b@11"
    ]  # fmt: skip


def test_a_kind_that_is_removed_has_no_objects_any_more(api: ScriptedApi, optional: Following) -> None:
    api.lists.extend([listing(10, pod("a", 3)), 404, listing(20)])
    api.watches.append([drop])

    words = optional.until("listed 20")
    assert words[:3] == ["listing 10", "seen a@3", "listed 10"]
    assert words[-4:] == ["listing", "listed", "listing 20", "listed 20"]


def test_a_kind_that_may_not_be_read_is_trouble(api: ScriptedApi, optional: Following) -> None:
    api.lists.append(403)
    assert optional.until("trouble") == ["trouble"]
