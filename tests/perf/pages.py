"""What 10,000 teams cost compared with 100: the inbox, a team's home, its history, and the history of everything.

Django runs in this process, with two databases that hold the same in proportion: grants, requests, events, emails. One
team in twenty has a pending request, and at least sixty do, so that the inbox is a full page on both sides. The same
request goes to both in turn.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from tests.perf.servers.database import own_database

FEW, MANY = 100, 10_000
ROUNDS = 7
REQUESTS = 12
# Name of the figure → address, and the user.
PAGES = {
    "inbox": ("/inbox", "dana"),
    "team_home": ("/teams/team-0", "alice"),
    "team_history": ("/teams/team-0/history", "alice"),
    "history": ("/history", "dana"),
}


@benchmark("pages", f"inbox, team and history with {MANY:,} teams over those with {FEW}", cluster=False)
def pages(context: Context) -> Iterator[Figure]:
    services = context.services
    sides: dict[int, Side] = {}
    with ExitStack() as databases:
        for teams in (FEW, MANY):
            name, urls = f"pages_{teams}", {key: services[key] for key in ("database_url", "redis_url")}
            databases.enter_context(own_database(name, **urls))
            sides[teams] = Side(teams)
        for address, who in PAGES.values():
            counts = {teams: side.queries(address, who) for teams, side in sides.items()}
            assert counts[FEW] == counts[MANY], f"{address} asks the database {counts} times"
        rounds = [{name: _round(sides, *page) for name, page in PAGES.items()} for _ in range(ROUNDS)]
    for name in PAGES:
        yield Figure(f"{name}_p50", "ms", f"{FEW} teams", [one[name] for one in rounds], Bar("ratio", 1.2))


def _round(sides: dict[int, Side], address: str, who: str) -> tuple[float, float]:
    """Returns medians for (many, few) teams, from requests in turn."""
    times: dict[int, list[float]] = {MANY: [], FEW: []}
    for _ in range(REQUESTS):
        for teams, found in times.items():
            found.append(sides[teams].get(address, who))
    return statistics.median(times[MANY]), statistics.median(times[FEW])


class Side:
    """A database with its connection and two people who are signed in there."""

    def __init__(self, teams: int) -> None:
        from django.db import connections
        from django.test import Client

        from accounts.models import User
        from cluster.models import Cluster
        from tests.load.many_teams import many_teams
        from tests.support.rows import make

        self.connection = connections["default"]
        cluster = Cluster.objects.create(name="main", notebooks_domain="notebooks.localhost")
        many_teams(cluster, teams=teams, waiting=max(60, teams // 20))
        # As autovacuum does before long: an index-only scan needs pages that are marked all-visible.
        with self.connection.cursor() as cursor:
            cursor.execute("VACUUM")
        people = {"dana": make.approver("Dana"), "alice": User.objects.get(email="owner-0@example.org")}
        self.clients: dict[str, Any] = {}
        for name, person in people.items():
            self.clients[name] = Client(headers={"Host": "localhost"})
            self.clients[name].force_login(person)

    def get(self, address: str, who: str) -> float:
        """Returns milliseconds."""
        from django.db import connections

        connections["default"] = self.connection
        self._beat()
        began = time.perf_counter()
        answer = self.clients[who].get(address)
        took = (time.perf_counter() - began) * 1000
        assert answer.status_code == 200, f"{address} answered {answer.status_code}: {answer.content[:300]!r}"
        return took

    def queries(self, address: str, who: str) -> int:
        from django.test.utils import CaptureQueriesContext

        self.get(address, who)
        with CaptureQueriesContext(self.connection) as asked:
            self.clients[who].get(address)
        return len(asked)

    def _beat(self) -> None:
        """Sends the watcher's heartbeat, so that the data counts as current."""
        from django.db.models.functions import Now

        from cluster.models import MirrorEpoch, MirrorKind

        MirrorEpoch.objects.update(beat_at=Now())
        MirrorKind.objects.update(heard_at=Now())
