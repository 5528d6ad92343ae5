"""A team with 10,000 Warning events, beside a team with ten: its home and the page of the workload that they are about.

Django runs in this process, and the same request goes to both teams in turn. Kubernetes keeps an Event of its own for
each text, so that most of them repeat the reasons of others.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from tests.perf.servers.database import own_database

FEW, MANY = 10, 10_000
REASONS = ("BackOff", "Unhealthy", "FailedMount", "FailedScheduling", "Evicted")
ROUNDS, REQUESTS = 7, 12
RATIO = 1.5
PAGES = {"home": "/teams/{}", "workload": "/teams/{}/workloads/train"}


@benchmark("warnings", f"the pages of a team with {MANY:,} Warning events over those with {FEW}", cluster=False)
def warnings(context: Context) -> Iterator[Figure]:
    services = context.services
    with own_database("warnings", database_url=services["database_url"], redis_url=services["redis_url"]):
        clients = _teams()
        rounds = [{name: _round(clients, address) for name, address in PAGES.items()} for _ in range(ROUNDS)]
    for name in PAGES:
        peer = f"a team with {FEW}"
        yield Figure(f"warnings_{name}_p50", "ms", peer, [one[name] for one in rounds], Bar("ratio", RATIO))


def _teams() -> dict[int, Any]:
    """Returns a signed-in client of the owner of each team, `team-FEW` and `team-MANY`."""
    from django.db import connection
    from django.test import Client
    from django.utils import timezone

    from cluster.models import Cluster, MirrorWarning
    from cluster.reads import queries as mirror
    from tests.support.rows import make, running
    from tests.support.rows.mirrored import hardware_seen

    cluster = Cluster.objects.create(name="main")
    hardware_seen(cluster)
    gpu_class, now = make.gpu_class(cluster), timezone.now()
    clients = {}
    for number in (FEW, MANY):
        team, person = make.tenant(cluster, slug=f"team-{number}"), make.user(f"Owner {number}")
        make.member(team, person)
        make.grant(team, gpu_class, units=2)
        namespace = team.namespaces.get()
        pod = running.make_ready(
            running.workload(namespace, gpu_class, name="train", by=person, kind="job", origin=team.slug)
        )
        MirrorWarning.objects.bulk_create(
            MirrorWarning(
                cluster_id=cluster.pk, namespace=namespace.name, name=f"{pod.name}.{at:x}", uid=f"{number}-{at}",
                resource_version=at, object_kind="Pod", object_name=pod.name, object_uid=pod.uid,
                reason=REASONS[at % len(REASONS)], message=f"{at}: " + "the volume is not attached. " * 10, count=1,
                first_at=now, last_at=now - timedelta(seconds=at),
            )
            for at in range(number)
        )  # fmt: skip
        assert len(mirror.warnings(cluster.pk, [pod.uid])) == len(REASONS)
        clients[number] = Client(headers={"Host": "localhost"})
        clients[number].force_login(person)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return clients


def _round(clients: dict[int, Any], address: str) -> tuple[float, float]:
    """Returns the medians for (many, few) events, from requests in turn."""
    from django.db.models.functions import Now

    from cluster.models import MirrorEpoch, MirrorKind

    # The watcher's heartbeat: the rows count as current.
    MirrorEpoch.objects.update(beat_at=Now())
    MirrorKind.objects.update(heard_at=Now())
    took: dict[int, list[float]] = {number: [] for number in clients}
    for _ in range(REQUESTS):
        for number, client in clients.items():
            began = time.perf_counter()
            answer = client.get(address.format(f"team-{number}"))
            took[number].append((time.perf_counter() - began) * 1000)
            assert answer.status_code == 200, f"{answer.status_code}: {answer.content[:300]!r}"
    return statistics.median(took[MANY]), statistics.median(took[FEW])
