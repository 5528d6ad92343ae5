"""What provisioning costs compared with writing the same objects: 200 namespaces of about ten objects, on each side,
six times.

Portal: namespaces with grants become due in its database; its worker, which gets a hint for each as after a decision,
provisions them. Limit: an asyncio client with the worker's identity that POSTs the same manifests over kept-alive
connections, many namespaces at once, the Namespace object first. All 200 start at once.

Both sides end at the same sight: an independent watch sees every ClusterQueue open and Active, and for the portal the
rows are settled too. A client that stops at its last POST was the peer before; it left to Kueue what the portal waits
for, so that a person can launch when the page says "ready". Beside the time: requests to the API server, counted by it
(those of its watches are few), and processor time, of the portal's processes with its database and of the client.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import aiohttp

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from devcluster.client.kube import Api
from tests.perf.servers.database import database_of
from tests.perf.support.first_sights import FirstSights
from tests.perf.support.processes import cpu_s
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tenants.models import Namespace

ROUNDS = 6
A_ROUND = 200
SLOWER = 1.6
MORE_REQUESTS = 1.5
PROCESSES = ("worker", "watcher", "postgres")
AT_ONCE = 32
WITHIN_S = 180.0
PREFIX = "bench-provision"
PEER = "an asyncio client that POSTs the same objects"
PATHS = {
    "Namespace": "v1/namespaces",
    "LimitRange": "v1/limitranges",
    "ResourceQuota": "v1/resourcequotas",
    "NetworkPolicy": "networking.k8s.io/v1/networkpolicies",
    "ServiceAccount": "v1/serviceaccounts",
    "RoleBinding": "rbac.authorization.k8s.io/v1/rolebindings",
    "ClusterQueue": "kueue.x-k8s.io/v1beta2/clusterqueues",
    "LocalQueue": "kueue.x-k8s.io/v1beta2/localqueues",
}
OURS = "app.kubernetes.io/managed-by=gpu-portal"
Manifest = dict[str, Any]
Key = tuple[str, str, str]
Measured = dict[str, float]
DISPATCHED = re.compile(
    r'^apiserver_flowcontrol_dispatched_requests_total\{flow_schema="gpu-portal"[^}]*\} (\S+)$', re.MULTILINE
)


@benchmark("provision", f"{A_ROUND} namespaces provisioned at once, over an asyncio client that POSTs the same objects")
def provision(context: Context) -> Iterator[Figure]:
    with database_of(context.demo):
        ground = _Ground(context)
        try:
            rounds = [ground.round(number) for number in range(ROUNDS)]
            ground.count()
        finally:
            ground.clear()
    for name, unit, bar in (
        ("time", "s", Bar("ratio", SLOWER)),
        ("requests", "API requests for each object", Bar("ratio", MORE_REQUESTS)),
        ("processor_time", "s", None),
    ):
        figures = [(ours[name], peer[name]) for ours, peer in rounds]
        yield Figure(f"provision_{name}", unit, PEER, figures, bar)
    for process in PROCESSES:
        figures = [(ours[process], peer["processor_time"]) for ours, peer in rounds]
        yield Figure(f"provision_processor_time_of_{process}", "s", PEER, figures)


class _Ground:
    """Teams in the demo's own database, and the worker's identity for the peer."""

    def __init__(self, context: Context) -> None:
        from catalog.models import GpuClass
        from cluster.models import Cluster

        self.admin = context.admin
        self.worker = Api(context.services["kubeconfigs"]["worker"])
        self.cluster = Cluster.objects.get()
        active = GpuClass.objects.filter(cluster=self.cluster, life_cycle=GpuClass.LifeCycle.ACTIVE)
        self.classes = list(active.exclude(resource="").order_by("slug")[:3])
        self.wanted: set[Key] = set()
        self.names: list[str] = []
        self.processes = {name: context.demo["process_ids"][name] for name in PROCESSES}
        self.queues = FirstSights(context.admin.watch(PATHS["ClusterQueue"], labels=OURS, timeout_s=3600), _open)

    def round(self, number: int) -> tuple[Measured, Measured]:
        """Of the portal and of the peer; the first side changes from round to round."""
        rows = self._rows(f"{PREFIX}-o{number}")
        twins = self._manifests(self._rows(f"{PREFIX}-p{number}"))
        sides: dict[str, Callable[[], Measured]] = {"ours": lambda: self._ours(rows), "peer": lambda: self._peer(twins)}
        objects = sum(len(one) for one in twins)
        found = {}
        for side in sorted(sides, reverse=bool(number % 2)):
            before = self._requests()
            found[side] = sides[side]()
            found[side]["requests"] = (self._requests() - before) / objects
            self._settle()
        return found["ours"], found["peer"]

    def _requests(self) -> float:
        """Of the portal's identities, which the peer uses too, since the API server started."""
        return sum(map(float, DISPATCHED.findall(self.admin.raw("GET", "/metrics")[1].decode())))

    def _rows(self, prefix: str) -> list[Namespace]:
        """Rows that are decided and not yet due."""
        from datetime import timedelta

        from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
        from django.utils import timezone

        from tenants.models import Grant, Namespace, Tenant

        now = timezone.now()
        names = [f"{prefix}-{number:03}" for number in range(A_ROUND)]
        self.names += names
        teams = Tenant.objects.bulk_create(Tenant(slug=name, name=name) for name in names)
        period = DateTimeTZRange(now - timedelta(minutes=1), now + timedelta(days=90))
        Grant.objects.bulk_create(
            Grant(tenant=team, gpu_class=gpu_class, kind=Grant.Kind.BASE, units=2, period=period)
            for team in teams
            for gpu_class in self.classes
        )
        return Namespace.objects.bulk_create(
            Namespace(tenant=team, cluster=self.cluster, name=team.slug, due_at=None) for team in teams
        )

    def _manifests(self, rows: Sequence[Namespace]) -> list[list[Manifest]]:
        """The manifests that the worker sends last, with the queue open."""
        from cluster.manifests import namespace as manifests
        from cluster.reads.cluster_queue import ABSENT_QUEUE
        from tenants.core import queries as core_queries
        from tenants.grants import queries as grant_queries
        from tenants.provisioning import queries

        found = []
        for row in rows:
            shares = queries.class_shares(row, grant_queries.units_in_force(row.tenant_id, core_queries.database_now()))
            found.append(manifests.namespace_objects(queries.namespace_spec(row, shares, ABSENT_QUEUE, is_held=False)))
        self.wanted |= {_key(one) for wanted in found for one in wanted}
        return found

    # ---- measuring the portal ------------------------------------------------------------------------------------

    def _ours(self, rows: Sequence[Namespace]) -> Measured:
        from portal.core.due import touch
        from tenants.models import Namespace

        self._manifests(rows)
        before = {name: cpu_s([pid]) for name, pid in self.processes.items()}
        began = time.perf_counter()
        for row in rows:
            touch(Namespace, row.pk)
        pks = [row.pk for row in rows]
        wait_until(
            lambda: not self._unsettled(pks),
            within_s=WITHIN_S,
            every_s=0.1,
            what="all are provisioned",
            story=lambda: str(self._errors(pks)),
        )
        self.queues.await_all({row.name for row in rows}, within_s=WITHIN_S)
        took = time.perf_counter() - began
        assert not self._errors(pks), f"errors of the worker: {self._errors(pks)}"
        spent = {name: cpu_s([pid]) - before[name] for name, pid in self.processes.items()}
        return {"time": took, "processor_time": sum(spent.values()), **spent}

    def _unsettled(self, pks: Sequence[int]) -> int:
        from django.db.models import F

        from tenants.models import Namespace

        return Namespace.objects.filter(pk__in=pks).exclude(observed_generation=F("generation")).count()

    def _errors(self, pks: Sequence[int]) -> list[tuple[str, str]]:
        from cluster.models import AppliedObject
        from tenants.models import Namespace

        failed = Namespace.objects.filter(pk__in=pks).exclude(error_code="").values_list("name", "error_text")
        owners = [f"{Namespace._meta.label_lower}.{pk}" for pk in pks]
        refused = AppliedObject.objects.filter(owner__in=owners).exclude(result=AppliedObject.Result.APPLIED)
        return [*failed, *refused.values_list("name", "text")]

    # ---- measuring the peer --------------------------------------------------------------------------------------

    def _peer(self, namespaces: Sequence[Sequence[Manifest]]) -> Measured:
        """Its processor time is that of this thread: the watch has one of its own."""
        queues = {_name(one) for wanted in namespaces for one in wanted if one["kind"] == "ClusterQueue"}
        spent = time.thread_time()
        began = asyncio.run(_post_all(self.worker, namespaces))
        self.queues.await_all(queues, within_s=WITHIN_S)
        return {"time": time.perf_counter() - began, "processor_time": time.thread_time() - spent}

    # ---- waiting and cleaning up ---------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Waits until the cluster's own controllers are done: every queue is active, every quota is counted."""
        wait_until(self._is_quiet, within_s=WITHIN_S, every_s=0.2, what="every queue is active, every quota counted")

    def _is_quiet(self) -> bool:
        queues = self._of(PATHS["ClusterQueue"])
        active = sum(_is_active(queue) for queue in queues)
        counted = sum("hard" in quota.get("status", {}) for quota in self._of(PATHS["ResourceQuota"]))
        return active == len(queues) == counted

    def _of(self, path: str) -> list[Manifest]:
        found = self.admin.list(path, labels=OURS)
        return [one for one in found if _namespace(one).startswith(PREFIX)]

    def count(self) -> None:
        """Exactly one of each object, open queues, and no other object with the portal's label."""
        found = Counter(
            (kind, one["metadata"].get("namespace", ""), one["metadata"]["name"])
            for kind, path in PATHS.items()
            for one in self._of(path)
        )
        assert set(found) == self.wanted, f"{len(set(found) ^ self.wanted)} objects differ from what was wanted"
        assert set(found.values()) == {1}
        shut = [
            one["metadata"]["name"] for one in self._of(PATHS["ClusterQueue"]) if one["spec"]["stopPolicy"] != "None"
        ]
        assert not shut, f"still on hold: {shut}"

    def clear(self) -> None:
        """Deletes the rows first: otherwise the portal would repair what is deleted."""
        self.queues.stop()
        from cluster.models import AppliedObject
        from tenants.models import Grant, Namespace, Tenant

        rows = Namespace.objects.filter(name__in=self.names)
        owners = [f"{Namespace._meta.label_lower}.{pk}" for pk in rows.values_list("pk", flat=True)]
        AppliedObject.objects.filter(owner__in=owners).delete()
        rows.delete()
        Grant.objects.filter(tenant__slug__in=self.names).delete()
        Tenant.objects.filter(slug__in=self.names).delete()
        for kind in ("Namespace", "ClusterQueue"):
            for one in self._of(PATHS[kind]):
                self.admin.delete(PATHS[kind], one["metadata"]["name"])


async def _post_all(api: Api, namespaces: Sequence[Sequence[Manifest]]) -> float:
    """Returns when it began, on the clock of `perf_counter`: its connections are opened before. Posts the Namespace
    first, since nothing can be in it before; then all other objects at once.
    """
    tls: ssl.SSLContext | bool = api._tls or False
    headers = {"Authorization": f"Bearer {api.token}", "Content-Type": "application/json"}
    connector = aiohttp.TCPConnector(limit=AT_ONCE, ssl=tls)
    async with aiohttp.ClientSession(api.server.geturl(), connector=connector, headers=headers) as session:

        async def post(manifest: Manifest) -> None:
            async with session.post(api._path_for(manifest, with_name=False), data=json.dumps(manifest)) as answer:
                text = await answer.text()
                assert answer.status == 201, f"the peer was answered {answer.status}: {text[:300]}"

        async def provision_one(wanted: Sequence[Manifest]) -> None:
            await post(wanted[0])
            await asyncio.gather(*(post(one) for one in wanted[1:]))

        await asyncio.gather(*(session.get(f"/healthz?{number}") for number in range(AT_ONCE)))
        for wanted in namespaces:
            for one in wanted:
                api._path_for(one)
        began = time.perf_counter()
        await asyncio.gather(*(provision_one(wanted) for wanted in namespaces))
        return began


def _open(_kind: str, one: Manifest) -> str:
    """Of a ClusterQueue that is open and Active."""
    return _name(one) if one.get("spec", {}).get("stopPolicy") == "None" and _is_active(one) else ""


def _name(one: Manifest) -> str:
    return str(one["metadata"]["name"])


def _key(manifest: Manifest) -> Key:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]


def _namespace(one: Manifest) -> str:
    return str(one["metadata"].get("namespace", one["metadata"]["name"]))


def _is_active(queue: Manifest) -> bool:
    conditions = queue.get("status", {}).get("conditions", [])
    return any(one["type"] == "Active" and one["status"] == "True" for one in conditions)
