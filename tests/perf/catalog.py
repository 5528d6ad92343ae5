"""What 1,000 nodes with 8,000 pods cost compared with 10 with 80: catalog page, classes and capacity of the API.

Django runs in this process, on its own database: two clusters with the same kinds of hardware, each with a user who has
a team there. The same request goes to both in turn; nothing is cached between requests.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from tests.perf.servers.database import own_database

if TYPE_CHECKING:
    from django.test import Client

FEW, MANY = 10, 1000
ROUNDS = 7
REQUESTS = 20
PATHS = {
    "catalog_page": "/catalog",
    "catalog_classes": "/api/v1/classes?limit=100",
    "catalog_capacity": "/api/v1/capacity",
}


@benchmark("catalog", f"the catalog with {MANY} nodes over the catalog with {FEW}", cluster=False)
def catalog(context: Context) -> Iterator[Figure]:
    services = context.services
    with own_database("catalog", database_url=services["database_url"], redis_url=services["redis_url"]):
        clients = _clusters()
        rounds = [{name: _round(clients, path) for name, path in PATHS.items()} for _ in range(ROUNDS)]
    for name in PATHS:
        pairs = [one[name] for one in rounds]
        yield Figure(f"{name}_p50", "ms", f"{FEW} nodes", pairs, Bar("ratio", 1.2))


def _round(clients: dict[int, Client], path: str) -> tuple[float, float]:
    """Returns medians for (many, few) nodes, from requests in turn."""
    from cluster.models import MirrorEpoch, MirrorKind

    MirrorEpoch.objects.update(beat_at=_now())
    MirrorKind.objects.update(heard_at=_now())
    times: dict[int, list[float]] = {MANY: [], FEW: []}
    for _ in range(REQUESTS):
        for nodes, found in times.items():
            found.append(_request(clients, path, nodes))
    return statistics.median(times[MANY]), statistics.median(times[FEW])


def _request(clients: dict[int, Client], path: str, nodes: int) -> float:
    from django.conf import settings

    settings.CLUSTER_NAME = _name(nodes)
    began = time.perf_counter()
    answer = clients[nodes].get(path)
    took = (time.perf_counter() - began) * 1000
    assert answer.status_code == 200, f"{path} answered {answer.status_code}: {answer.content[:300]!r}"
    return took


def _clusters() -> dict[int, Client]:
    """By number of nodes: a signed-in user with a team and a unit of every class in that cluster."""
    from django.test import Client

    from cluster.models import Cluster
    from tenants.models import Membership
    from tests.load import crowd
    from tests.support.rows import make

    found = {}
    for nodes in (FEW, MANY):
        cluster = Cluster.objects.create(name=_name(nodes), notebooks_domain="notebooks.localhost")
        team = make.tenant(cluster, slug=f"team-{nodes}", namespace="team-0")
        found[nodes] = Client(headers={"Host": "localhost"})
        person = make.user(f"Alice-{nodes}")
        make.member(team, person, Membership.Role.OWNER)
        found[nodes].force_login(person)
        for gpu_class in crowd.crowd(cluster, nodes=nodes):
            make.grant(team, gpu_class, units=1)
    return found


def _name(nodes: int) -> str:
    return f"of-{nodes}"


def _now() -> object:
    from django.db.models.functions import Now

    return Now()
