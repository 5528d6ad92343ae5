"""What a decision costs compared with its own statements, and whether sixteen approvers can promise too much.

Django runs in this process, on its own database. A decision is `tenants.requests.decisions.actions.decide_request` of
one line, with its evidence, its Event and its email. Its peer is the same statements, with their parameters in them, as
plain SQL over one connection: what is on top is Python. A single UPDATE was the peer before; it did less, so that the
figure grew with every rule that a decision learned to check.

Then sixteen threads decide lines of one class at once. The class has fewer units than the lines ask for: exactly those
units are promised in the end.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from tests.perf.servers.database import own_database
from tests.perf.support.replayed import sender, statements_of

TEAMS = 1000
ROUNDS = 6
A_ROUND = 40
SLOWER = 2.0
APPROVERS = 16
# For each line that is approved, one more is refused.
UNITS = 160


@benchmark("decide", "a decision over its own statements as plain SQL; 16 approvers at one class", cluster=False)
def decide(context: Context) -> Iterator[Figure]:
    services = context.services
    with own_database("decide", database_url=services["database_url"], redis_url=services["redis_url"]):
        ground = _Ground()
        with sender(os.environ["DATABASE_URL"]) as send:
            for name, lines in (("decide_one_class", ground.hot), ("decide_many_teams", ground.wide)):
                rounds = [ground.compare(lines(2 * A_ROUND), send) for _ in range(ROUNDS)]
                yield Figure(name, "ms", f"its {ground.sent} statements as plain SQL", rounds, Bar("ratio", SLOWER))
        crowds = [ground.crowd(f"crowd-{number}") for number in range(ROUNDS)]
    yield Figure("decide_crowd", "decisions/s", "one approver", [pace for pace, _ in crowds])
    too_much = [(float(over), 0.0) for _, over in crowds]
    yield Figure("decide_crowd_promised_too_much", "units", "none", too_much, Bar("ours", 0))


class _Ground:
    """1,000 teams, approvers of all classes, and as many pending lines as a round decides."""

    def __init__(self) -> None:
        from accounts.core.actor import Actor
        from cluster.models import Cluster
        from tests.support.rows import make

        self.make = make
        self.cluster = Cluster.objects.create(name="main", notebooks_domain="notebooks.localhost")
        self.approvers = [Actor(user=make.approver(f"approver{number}"), via="page") for number in range(APPROVERS)]
        self.alice = make.user("Alice")
        self.hot_class = make.gpu_class(self.cluster, slug="hot", promise_limit=10_000_000)
        self.classes = [
            make.gpu_class(self.cluster, slug=f"class-{number}", promise_limit=10_000_000) for number in range(20)
        ]
        self.teams = [make.tenant(self.cluster, slug=f"team-{number}") for number in range(TEAMS)]
        self.next = 0
        self.sent = 0

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

    def compare(self, lines: Sequence[tuple[int, int]], send: Callable[[list[str]], float]) -> tuple[float, float]:
        """Milliseconds for each decision, and for its statements. The sides take turns, each with lines of its own."""
        ours = peer = 0.0
        for (request, line), (twin, twins_line) in zip(lines[::2], lines[1::2], strict=True):
            began = time.perf_counter()
            self.decide(request, line)
            ours += time.perf_counter() - began
            statements = statements_of(lambda pks=(twin, twins_line): self.decide(*pks))
            self.sent = len(statements)
            peer += send(statements)
        pks = [line for _, line in lines]
        self._check(pks, approved=len(pks))
        return ours * 1000 / A_ROUND, peer * 1000 / A_ROUND

    def crowd(self, slug: str) -> tuple[tuple[float, float], int]:
        """Decisions a second with sixteen approvers and with one, and units that were promised beyond the limit."""
        from tenants.models import Grant

        alone = self.make.gpu_class(self.cluster, slug=f"{slug}-alone", promise_limit=10_000_000)
        shared = self.make.gpu_class(self.cluster, slug=slug, promise_limit=UNITS)
        one = self._pace([self._pending(alone) for _ in range(A_ROUND)], at_once=1)
        lines = [self._pending(shared) for _ in range(2 * UNITS)]
        many = self._pace(lines, at_once=APPROVERS)
        promised = sum(Grant.objects.filter(gpu_class=shared).values_list("units", flat=True))
        self._check([line for _, line in lines], approved=UNITS)
        return (many, one), promised - UNITS

    def _check(self, pks: Sequence[int], *, approved: int) -> None:
        """Counted apart from the decisions: this many lines are approved, and each has one grant."""
        from tenants.models import Grant, QuotaLine

        found = QuotaLine.objects.filter(pk__in=pks, state=QuotaLine.State.APPROVED).count()
        grants = Grant.objects.filter(line__in=pks).count()
        assert (found, grants) == (approved, approved), f"{found} approved and {grants} grants, {approved} expected"

    def _pace(self, lines: Sequence[tuple[int, int]], *, at_once: int) -> float:
        """Returns answers for each second, of approvals and of refusals: threads take turns at the list."""
        waiting = list(lines)
        failures: list[BaseException] = []

        def work(by: Any) -> None:
            from django.db import connection

            try:
                while waiting:
                    try:
                        pks = waiting.pop()
                    except IndexError:
                        break
                    while not self._is_answered(*pks, by=by):
                        pass
            except BaseException as error:
                failures.append(error)
            finally:
                connection.close()

        threads = [threading.Thread(target=work, args=(by,)) for by in self.approvers[:at_once]]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return len(lines) / (time.perf_counter() - began)

    def _is_answered(self, request: int, line: int, *, by: Any) -> bool:
        """False: the class was locked for two seconds, and the approver tries again, as the sentence says."""
        from portal.core.errors import Refused

        try:
            self.decide(request, line, by=by)
        except Refused as refused:
            if refused.code not in ("busy", "over_promised"):
                raise
            return refused.code != "busy"
        return True

    def decide(self, request: int, line: int, by: Any = None) -> None:
        from tenants.requests.decisions import actions
        from tenants.requests.decisions import types as decision_types

        decisions = [decision_types.Decision(line, approve=True)]
        actions.decide_request(request, decisions, by=by or self.approvers[0])
