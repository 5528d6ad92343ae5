"""Pages take the same number of queries with many teams as with few. `run.py bench pages` measures their time."""

from __future__ import annotations

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from cluster.models import Cluster
from tests.load.many_teams import many_teams

PAGES = (
    ("/inbox", "dana@example.org"),
    ("/history", "dana@example.org"),
    ("/teams/team-0", "owner-0@example.org"),
    ("/teams/team-0/history", "owner-0@example.org"),
)


@pytest.mark.usefixtures("dana")
def test_the_number_of_queries_does_not_grow_with_the_teams(cluster: Cluster) -> None:
    few, many = queries(cluster, teams=4, waiting=3), queries(cluster, teams=30, waiting=25)
    assert few == many


def queries(cluster: Cluster, *, teams: int, waiting: int) -> dict[str, int]:
    """Returns the queries by page, in a portal with that many teams; the teams are removed afterwards."""
    found = {}
    with transaction.atomic():
        many_teams(cluster, teams=teams, waiting=waiting)
        for path, email in PAGES:
            client = Client(headers={"Host": "localhost"})
            client.force_login(User.objects.get(email=email))
            client.get(path)
            with CaptureQueriesContext(connection) as asked:
                answer = client.get(path)
            assert answer.status_code == 200
            found[path] = len(asked)
        transaction.set_rollback(True)
    return found
