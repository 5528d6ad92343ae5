"""An API server that asks for a pause gets it, by the client and by the watch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.client.errors import LONGEST_PAUSE_S, ClusterUnavailable, pause_s
from cluster.mirror.records.kinds import KINDS
from cluster.mirror.watch import WatchLimits, follow_kind
from tests.cluster.mirror.scripted_api import ScriptedApi, listing

PATH = "api/v1/pods"


@pytest.fixture
def api() -> Iterator[ScriptedApi]:
    found = ScriptedApi()
    yield found
    found.close()


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), (None, 0.0), ("", 0.0), ("-3", 0.0), ("soon", 0.0), ("86400", LONGEST_PAUSE_S)],
)
def test_the_header_in_seconds(header: str | None, seconds: float) -> None:
    assert pause_s(header) == seconds


@pytest.mark.parametrize("status", [429, 503])
def test_the_error_says_how_long(api: ScriptedApi, tmp_path: Path, status: int) -> None:
    api.lists.append(status)
    api.retry_after = "7"
    with pytest.raises(ClusterUnavailable) as raised:
        api.client(tmp_path).list_page(PATH)
    assert raised.value.after_s == 7


def test_after_too_many_requests_no_call_is_sent(api: ScriptedApi, tmp_path: Path) -> None:
    api.lists.extend([429, listing(3)])
    api.retry_after = "30"
    kube = api.client(tmp_path)
    for _ in range(3):
        with pytest.raises(ClusterUnavailable) as raised:
            kube.list_page(PATH)
        assert 25 < raised.value.after_s <= 30
    assert len(api.asked) == 1


def test_after_the_pause_calls_are_sent(api: ScriptedApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api.lists.extend([429, listing(3)])
    api.retry_after = "30"
    kube = api.client(tmp_path)
    with pytest.raises(ClusterUnavailable):
        kube.list_page(PATH)
    monkeypatch.setattr(kube, "_pause_ends", kube._pause_ends - 30)
    assert kube.list_page(PATH)["metadata"]["resourceVersion"] == "3"


@pytest.mark.parametrize("header", ["", "30"])
def test_an_unavailable_server_is_asked_again_by_others(api: ScriptedApi, tmp_path: Path, header: str) -> None:
    """503 may be of one part of the API only."""
    api.lists.extend([503, listing(3)])
    api.retry_after = header
    kube = api.client(tmp_path)
    with pytest.raises(ClusterUnavailable):
        kube.list_page(PATH)
    assert kube.list_page(PATH)["metadata"]["resourceVersion"] == "3"


@pytest.mark.parametrize("at", ["list", "watch"])
def test_the_watch_waits(api: ScriptedApi, tmp_path: Path, at: str) -> None:
    api.lists.extend([429] if at == "list" else [listing(3)])
    api.watches.append(429)
    api.retry_after = "20"
    waited: list[float] = []

    def pause(seconds: float) -> bool:
        waited.append(seconds)
        return True

    limits = WatchLimits(first_wait_s=0.1, longest_wait_s=1)
    for _note in follow_kind(api.client(tmp_path), KINDS["Pod"], pause=pause, limits=limits):
        pass
    assert len(waited) == 1
    assert 20 <= waited[0] <= 24
