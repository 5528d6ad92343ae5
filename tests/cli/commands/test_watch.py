"""`gpu watch`: each event once, over broken connections. The events are the portal's own; doors goes on after them."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx
import pytest
from django.db import transaction

from accounts.core.actor import Actor
from accounts.events.actions import record
from accounts.models import Event, User
from gpu_cli.commands.watch import ATTEMPTS, Item, items
from tenants.models import Tenant
from tests.cli.command import Gpu, answered, unheard

pytestmark = pytest.mark.django_db


class Stopped(BaseException):
    """Ctrl-C."""


def stop() -> None:
    raise Stopped


def ids(out: str) -> list[int]:
    return [json.loads(line)["id"] for line in out.splitlines()]


@pytest.fixture
def happens(team_a: Tenant, bob: User) -> Callable[[], Event]:
    def one() -> Event:
        with transaction.atomic():
            return record(Actor(bob, "page"), "workload.launched", team_a, tenant="team-a", after={"n": "a\nb"})

    return one


def watched(gpu: Gpu, *arguments: str) -> str:
    with pytest.raises(Stopped):
        gpu("watch", *arguments)
    return gpu.capsys.readouterr().out


def test_each_event_is_one_line_and_a_broken_connection_neither_loses_nor_repeats_one(
    gpu: Gpu, happens: Callable[[], Event]
) -> None:
    before, first = happens(), happens()
    text = f"id: {first.pk}\nevent: event\ndata: {json.dumps({'id': first.pk})}\n\nid: {first.pk + 1}\nevent: ev"

    def cut(_request: httpx.Request) -> httpx.Response:
        def written():  # type: ignore[no-untyped-def]
            yield text.encode()
            raise httpx.ReadError("cut off")

        return httpx.Response(200, content=written())

    gpu.between.faults = [cut]
    made: list[Event] = []
    gpu.meanwhile = iter([lambda: made.append(happens()), lambda: made.append(happens()), lambda: None, stop])
    out = watched(gpu, "--team", "team-a", "--after", str(before.pk))
    assert ids(out) == [first.pk, made[0].pk, made[1].pk]
    asked = [dict(request.url.params) for request in gpu.between.asked]
    assert asked[0] == {"team": "team-a", "after": str(before.pk)}
    assert asked[1] == {"team": "team-a", "after": str(first.pk)}
    assert json.loads(out.splitlines()[1])["verb"] == "workload.launched"


def test_without_an_id_it_begins_now(gpu: Gpu, happens: Callable[[], Event]) -> None:
    happens()
    made: list[Event] = []
    gpu.meanwhile = iter([lambda: made.append(happens()), lambda: None, stop])
    assert ids(watched(gpu)) == [made[0].pk]


def test_what_is_refused_and_what_does_not_answer(gpu: Gpu, team_a: Tenant) -> None:
    assert gpu("watch", "--team", "team-b").code == 6
    assert gpu("watch", "--after", "999999999").code == 6
    assert gpu("watch", "--after", "one").code == 2
    gpu.between.faults = [answered(401, body={"code": "token_revoked", "message": "no", "field": None})]
    assert gpu("watch").code == 7
    gpu.between.faults = [unheard(httpx.ConnectError)] * ATTEMPTS
    assert gpu("watch").code == 5


def test_items_of_a_stream() -> None:
    lines = ["retry: 5000", "id: 7", "", ":", "", "id: 8", "event: event", 'data: {"a": ": 1"}', "", "id: 9", "data: {"]
    assert list(items(lines)) == [Item(7, ""), Item(8, '{"a": ": 1"}')]
