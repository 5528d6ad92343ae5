"""What a decision costs compared with its one conditional UPDATE: on one contended class, and over many teams.

Django runs in this process, on its own database. Four people decide at once. A decision is
`tenants.requests.decisions.actions.decide_request` of one line, with its evidence, its Event and its email; the peer is
the UPDATE of such a row in its own transaction.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from tests.perf.servers.database import own_database

TEAMS = 1000
AT_ONCE = 4
ROUNDS = 6
A_ROUND = 40
# At least 0.3 of the updates' rate.
SLOWER = 1 / 0.3


@benchmark("decide", "decisions over conditional updates, on one hot class and on 1,000 teams", cluster=False)
def decide(context: Context) -> Iterator[Figure]:
    services = context.services
    with own_database("decide", database_url=services["database_url"], redis_url=services["redis_url"]):
        ground = _Ground()
        hot = [_round(ground, ground.hot) for _ in range(ROUNDS)]
        wide = [_round(ground, ground.wide) for _ in range(ROUNDS)]
    for name, rounds in (("decide_hot_class", hot), ("decide_many_teams", wide)):
        yield Figure(name, "ms", "one conditional UPDATE", rounds, Bar("ratio", SLOWER))


def _round(ground: _Ground, lines: Callable[[int], Sequence[tuple[int, int]]]) -> tuple[float, float]:
    return ground.pace(ground.decide, lines(A_ROUND)), ground.pace(ground.update, lines(A_ROUND))


class _Ground:
    """1,000 teams, an approver of all classes, and as many pending lines as a round decides."""

    def __init__(self) -> None:
        from accounts.core.actor import Actor
        from cluster.models import Cluster
        from tests.support.rows import make

        cluster = Cluster.objects.create(name="main", notebooks_domain="notebooks.localhost")
        self.dana = Actor(user=make.approver("Dana"), via="page")
        self.alice = make.user("Alice")
        self.hot_class = make.gpu_class(cluster, slug="hot", promise_limit=10_000_000)
        self.classes = [
            make.gpu_class(cluster, slug=f"class-{number}", promise_limit=10_000_000) for number in range(20)
        ]
        self.teams = [make.tenant(cluster, slug=f"team-{number}") for number in range(TEAMS)]
        self.next = 0

    def hot(self, count: int) -> list[tuple[int, int]]:
        """(request, line): all of one class, each of another team."""
        return [self._pending(self.hot_class) for _ in range(count)]

    def wide(self, count: int) -> list[tuple[int, int]]:
        return [self._pending(self.classes[number % len(self.classes)]) for number in range(count)]

    def _pending(self, gpu_class: Any) -> tuple[int, int]:
        from django.utils import timezone

        from tenants.models import Plan, QuotaLine, QuotaRequest

        team = self.teams[self.next % TEAMS]
        self.next += 1
        now = timezone.now()
        request = QuotaRequest.objects.create(tenant=team, filed_by=self.alice, justification="A benchmark.")
        Plan.objects.create(request=request, due_at=None)
        line = QuotaLine.objects.create(
            request=request,
            tenant=team,
            gpu_class=gpu_class,
            asked_units=1,
            asked_from=now,
            asked_until=now + timedelta(days=30),
        )
        return request.pk, line.pk

    def pace(self, verb: Callable[[int, int], None], lines: Sequence[tuple[int, int]]) -> float:
        """Returns milliseconds for each decision, with AT_ONCE threads that take turns at the list."""
        waiting = list(lines)
        failures: list[BaseException] = []

        def work() -> None:
            from django.db import connection

            try:
                while waiting:
                    try:
                        request, line = waiting.pop()
                    except IndexError:
                        break
                    verb(request, line)
            except BaseException as error:
                failures.append(error)
            finally:
                connection.close()

        threads = [threading.Thread(target=work) for _ in range(AT_ONCE)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return (time.perf_counter() - began) * 1000 / len(lines)

    def decide(self, request: int, line: int) -> None:
        from tenants.requests.decisions import actions
        from tenants.requests.decisions import types as decision_types

        actions.decide_request(request, [decision_types.Decision(line, approve=True)], by=self.dana)

    def update(self, _request: int, line: int) -> None:
        from django.db.models.functions import Now

        from tenants.models import QuotaLine

        rows = QuotaLine.objects.filter(pk=line, state=QuotaLine.State.PENDING)
        assert rows.update(state=QuotaLine.State.DENIED, decided_at=Now(), reason="No.") == 1
