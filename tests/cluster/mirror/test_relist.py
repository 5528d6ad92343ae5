"""A new list of the namespace finds what a watch lost: after a delay, and without bringing deleted objects back."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from cluster.client.errors import ClusterUnavailable
from cluster.mirror import relist
from cluster.mirror.records.kinds import KINDS
from cluster.mirror.relist import Relister
from cluster.mirror.watch import NoteType, WatchNote
from cluster.mirror.writer import MirrorWriter
from cluster.models import Cluster, MirrorPod
from cluster.reads import queries
from tests.cluster.mirror.items import Item, Raw, listed, removed, seen
from tests.cluster.mirror.scripted_api import pod
from tests.support.threads import in_threads
from tests.support.waiting import wait_until

PLACE = "team-a"


@pytest.fixture
def mirror(cluster: Cluster) -> MirrorWriter:
    """Two pods, listed at version 10."""
    found = MirrorWriter(cluster.pk)
    found.open()
    found.write(listed(10, pod("a", 3), pod("b", 4)))
    return found


def look(at: int, *raws: Raw) -> list[Item]:
    kind = KINDS["Pod"]
    again = [(WatchNote(kind, NoteType.AGAIN), kind.seen(raw)) for raw in raws]
    return [*again, (WatchNote(kind, NoteType.COMPARED, str(at), text=PLACE), None)]


def rows() -> dict[str, int]:
    return dict(MirrorPod.objects.values_list("name", "resource_version"))


def doubtful(mirror: MirrorWriter) -> set[str]:
    found = {*mirror.doubtful}
    mirror.doubtful.clear()
    return found


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ((pod("a", 12, node="n1"), pod("b", 4)), {"a": 12, "b": 4}),
        ((pod("a", 3),), {"a": 3}),
        ((pod("a", 3), pod("b", 4), pod("c", 14)), {"a": 3, "b": 4, "c": 14}),
    ],
    ids=["a change", "an end", "a beginning"],
)
def test_what_two_looks_find_is_believed(
    mirror: MirrorWriter, there: tuple[Raw, ...], expected: dict[str, int]
) -> None:
    before = rows()
    mirror.write(look(20, *there))
    assert (rows(), doubtful(mirror)) == (before, {PLACE})

    channels = mirror.write(look(30, *there))
    assert (rows(), doubtful(mirror)) == (expected, set())
    assert channels


@pytest.mark.django_db
def test_what_the_watch_says_meanwhile_counts(mirror: MirrorWriter) -> None:
    """Each list is older than the events that arrived before it is read."""
    late = look(20, pod("a", 12), pod("b", 4), pod("c", 13))
    mirror.write(seen(pod("a", 21, node="n2")))
    mirror.write(removed(pod("c", 22)))
    for _ in range(2):
        mirror.write(late)
    assert (rows(), doubtful(mirror)) == ({"a": 21, "b": 4}, set())

    # A different difference in each list is no lost event: the watch is only behind.
    mirror.write(look(30, pod("a", 25), pod("b", 4)))
    mirror.write(look(40, pod("a", 35), pod("b", 4)))
    assert rows() == {"a": 21, "b": 4}
    assert doubtful(mirror) == {PLACE}


@pytest.mark.django_db
def test_what_came_after_a_look_is_not_missing_from_it(mirror: MirrorWriter) -> None:
    mirror.write(seen(pod("c", 21)))
    for _ in range(2):
        mirror.write(look(20, pod("a", 3), pod("b", 4)))
    assert rows() == {"a": 3, "b": 4, "c": 21}


@pytest.mark.django_db
def test_nothing_is_judged_while_everything_is_listed(mirror: MirrorWriter) -> None:
    begin, *rest = listed(50, pod("a", 3), pod("b", 4))
    mirror.write(look(20, pod("a", 3)))
    mirror.write([begin])
    mirror.write(look(30, pod("a", 3)))
    mirror.write(rest)
    assert rows() == {"a": 3, "b": 4}


@pytest.mark.django_db
def test_a_look_is_no_sign_of_life_of_the_watch(mirror: MirrorWriter, cluster: Cluster) -> None:
    mirror.write([(WatchNote(KINDS["Pod"], NoteType.TROUBLE, text="It is silent."), None)])
    mirror.write(look(20, pod("a", 3), pod("b", 4)))
    assert queries.as_of(cluster.pk, "Pod").problem == "It is silent."


class Scripted:
    """Answers lists of namespaces; `asked`: their paths."""

    def __init__(self, **pages: Any) -> None:
        self.pages = pages
        self.asked: list[str] = []

    def list_page(self, path: str, **_: Any) -> dict[str, Any]:
        self.asked.append(path)
        page = self.pages[path.split("/")[3]]
        if isinstance(page, Exception):
            raise page
        return dict(page)

    def watch_lines(self, path: str, **_: Any) -> Any:
        raise NotImplementedError(path)


def test_each_namespace_with_news_is_looked_at_once_and_a_large_one_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AFTER_S", "PACE_S", "IDLE_S"):
        monkeypatch.setattr(relist, name, 0.01)
    page = {"metadata": {"resourceVersion": "20"}, "items": [pod("a", 3)]}
    large = {"metadata": {"resourceVersion": "20", "continue": "more"}, "items": [pod("a", 3)]}
    source = Scripted(small=page, large=large, away=ClusterUnavailable("It did not answer."))
    told: list[WatchNote] = []
    is_over = threading.Event()
    found = Relister(source, ["Pod", "Node"], lambda note: bool(told.append(note)))

    def asked(name: str) -> int:
        return source.asked.count(f"api/v1/namespaces/{name}/pods")

    def ask() -> None:
        try:
            wait_until(lambda: asked("small") and asked("large") and asked("away"), within_s=20)
            found.after(["large", "small"])
            wait_until(lambda: asked("small") == 2, within_s=20)
        finally:
            is_over.set()

    for _ in range(3):
        found.after(["small", "large", "away"])
    in_threads(1, lambda: found.run(is_over), ask)
    assert (asked("small"), asked("large"), asked("away"), len(source.asked)) == (2, 1, 1, 4)
    assert [(note.what, note.resource_version, note.text) for note in told] == [
        (NoteType.AGAIN, "", ""),
        (NoteType.COMPARED, "20", "small"),
    ] * 2
