"""Compares moments of a churning cluster: the portal's answers about a team, an independent client's lists at exactly
the resource versions that the portal gives, and Kueue's own answer about the queue.

The portal's answers are read in one snapshot of the database, through the API that scripts use. Allocation and states
are compared at every moment. Kueue's queue has no version: positions are compared if the queue was the same before and
after, and equals the listed one then and at the portal's version; otherwise another moment is taken and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.db import connection, transaction
from django.test import Client

from accounts.models import User
from catalog.classes.capacity import queries as capacity_queries
from catalog.models import GpuClass
from cluster.manifests.names import run_name
from cluster.reads import queries as mirror
from devcluster.client.kube import Api, path_of
from devcluster.client.types import Json
from devcluster.controlplane.kueue import VISIBILITY
from tenants.models import Namespace
from tests.load.capacity import independent_count as counting
from tests.support.waiting import wait_until
from workloads.models import Run, Workload

RESOURCES = {
    "Job": "batch/v1/jobs",
    "Pod": "v1/pods",
    "Workload": "kueue.x-k8s.io/v1beta2/workloads",
    "Node": "v1/nodes",
}
OVER = ("Succeeded", "Failed")
TRIES_WITHIN_S = 60.0
# The message of steps that take longer than they should; objects alone do not show how long.
AFTER_A_WHILE = ("job_gone", "not_in_queue")


@dataclass(frozen=True)
class Said:
    """The portal's answers at `versions`. `runs`: the requested run of each listed workload."""

    versions: Mapping[str, str | None]
    live: Json
    workloads: Mapping[str, Json]
    runs: Mapping[str, Run | None]
    deleting: frozenset[str]
    figures: counting.Figures
    # A message about elapsed time may appear between two answers that read the same rows.
    is_of_one_moment: bool


@dataclass
class Listed:
    """The API server's lists at exactly these versions."""

    admin: Api
    namespace: str
    versions: Mapping[str, str | None]

    @cached_property
    def jobs(self) -> dict[str, Json]:
        return {one["metadata"]["name"]: one for one in self._at("Job", self.namespace)}

    @cached_property
    def queue(self) -> dict[str, Json]:
        """By Job."""
        return by_job(self._at("Workload", self.namespace))

    @cached_property
    def everywhere(self) -> counting.Lists:
        return counting.Lists(self._at("Node"), self._at("Pod"), [], [])

    @property
    def pods(self) -> list[Json]:
        return [pod for pod in self.everywhere.pods if pod["metadata"]["namespace"] == self.namespace]

    def pods_of(self, job: str) -> list[Json]:
        theirs = [pod for pod in self.pods if pod["metadata"]["labels"].get("job-name") == job]
        return sorted(theirs, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))

    def _at(self, kind: str, namespace: str = "") -> list[Json]:
        params = {"resourceVersion": str(self.versions[kind]), "resourceVersionMatch": "Exact"}
        found = self.admin.request("GET", path_of(RESOURCES[kind], namespace=namespace), params=params)
        assert found["metadata"]["resourceVersion"] == self.versions[kind]
        return list(found["items"])


@dataclass
class Moments:
    """Moments of one team that has one class. `told`: how many were compared, and why others could not be."""

    admin: Api
    namespace: Namespace
    gpu_class: GpuClass
    person: User
    told: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.client = Client()
        self.client.force_login(self.person)

    def take(self) -> None:
        """Takes a moment in which everything can be compared."""
        wait_until(self._try, within_s=TRIES_WITHIN_S, what="a moment to compare", story=lambda: str(dict(self.told)))

    def _try(self) -> bool:
        before = self._visible()
        said = self.said()
        if said.live["is_stale"] or None in said.versions.values():
            self.told["stale"] += 1
            return False
        if not said.is_of_one_moment:
            self.told["time passed"] += 1
            return False
        listed = Listed(self.admin, self.namespace.name, said.versions)
        found = [*self.allocation(said, listed), *states(said, listed)]
        waits = _pending(listed.queue)
        now = _pending(by_job(self.admin.list(RESOURCES["Workload"], namespace=self.namespace.name)))
        order = self._visible()
        assert not found, (found, said.versions)
        if before != order or not set(order) == waits == now:
            self.told["the queue moved"] += 1
            return False
        found = list(positions(said, order))
        assert not found, (found, said.versions)
        self.told["compared"] += 1
        self.told["positions"] += len(order)
        self.told["most in line"] = max(self.told["most in line"], len(order))
        self.told["units used"] += _holding(said.live, self.gpu_class.slug).get("used", 0)
        return True

    def said(self) -> Said:
        slug = self.namespace.tenant.slug
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            earlier = self._ask(f"/api/v1/workloads?team={slug}&limit=200")
            live = self._ask(f"/api/v1/teams/{slug}/live")
            workloads = self._ask(f"/api/v1/workloads?team={slug}&limit=200")
            assert workloads["next"] is None
            rows = list(Workload.objects.filter(namespace=self.namespace, deleted_at=None))
            runs = {row.name: row.runs.order_by("-number").first() for row in rows}
            one = self.gpu_class
            figures = counting.told(capacity_queries.capacities(one.cluster, [one], with_nodes=True)[one.pk])
            return Said(
                versions=live["versions"] | mirror.kind_versions(self.namespace.cluster_id, "Node"),
                live=live,
                workloads={one["name"]: one for one in workloads["items"]},
                runs=runs,
                deleting=frozenset(row.name for row in rows if row.delete_requested_at),
                figures=figures,
                is_of_one_moment=_phases(earlier) == _phases(workloads),
            )

    def allocation(self, said: Said, listed: Listed) -> Iterator[str]:
        """Units that the team's pods hold, and that its waiting workloads request; the GPUs of the whole cluster."""
        slug, name = self.gpu_class.slug, self.gpu_class.resource
        held = sum(_units(pod, name) for pod in listed.pods if _is_on_a_node(pod))
        expected = {job: expected_state(said, listed, job) for job in said.runs}
        queued = sum(
            run.total_units for job, run in said.runs.items() if run and expected[job] in ("queued", "blocked")
        )
        holding = _holding(said.live, slug)
        told = {key: holding.get(key, 0) for key in ("used", "queued")}
        if told != {"used": held, "queued": queued}:
            yield f"the portal says {told}; pods hold {held} and {queued} are asked for"
        counted = counting.counted(self.gpu_class, listed.everywhere, driver="", product="")
        if counted != said.figures:
            yield f"the portal says {said.figures}; counted are {counted}"

    def _ask(self, path: str) -> Json:
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.content
        return dict(answer.json())

    def _visible(self) -> list[str]:
        """Jobs of waiting workloads, in Kueue's order."""
        path = f"{VISIBILITY}/clusterqueues/{self.namespace.name}/pendingworkloads"
        items = self.admin.request("GET", path)["items"]
        assert [one["positionInLocalQueue"] for one in items] == list(range(len(items)))
        return [one["metadata"]["ownerReferences"][0]["name"] for one in items]


def states(said: Said, listed: Listed) -> Iterator[str]:
    assert said.workloads.keys() == said.runs.keys()
    for name, body in said.workloads.items():
        told, expected = body["status"]["phase"], expected_state(said, listed, name)
        if told != expected:
            yield f"{name}: the portal says {told} ({body['status']['message']}), objects say {expected}"


def positions(said: Said, order: list[str]) -> Iterator[str]:
    """A run that is being stopped may show no position although Kueue still lists it; so may a run that failed during a
    preemption, until Kueue knows it.
    """
    for name, run in said.runs.items():
        job = run_name(name, run.number) if run else ""
        place = said.workloads[name]["status"]["facts"].get("position")
        expected = order.index(job) + 1 if job in order else None
        has_ended = said.workloads[name]["status"]["phase"] in ("failed", "succeeded")  # `states` has compared it
        is_leaving = has_ended or (run is not None and (run.stop_requested_at is not None or name in said.deleting))
        if place != expected and not (place is None and is_leaving):
            yield f"{name}: the portal says {place}, Kueue {expected} of {order}"


def _phases(workloads: Json) -> dict[str, str]:
    return {one["name"]: one["status"]["phase"] for one in workloads["items"]}


def expected_state(said: Said, listed: Listed, name: str) -> str:
    """Derived from the requests and raw objects, without the portal's own code."""
    run = said.runs[name]
    if run is None:
        return "stopped"
    if name in said.deleting:
        return "stopping"
    if run.ended_at is not None:
        return {"succeeded": "succeeded", "stopped": "stopped"}.get(run.outcome, "failed")
    if run.stop_requested_at is not None:
        return "stopping"
    job = run_name(name, run.number)
    if said.workloads[name]["status"]["reason"] in AFTER_A_WHILE:
        assert job not in listed.queue
        return str(said.workloads[name]["status"]["phase"])
    queued, pods = listed.queue.get(job), listed.pods_of(job)
    staying = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    if staying:
        return _state_of_pod(staying[-1], run)
    if queued is not None and _is(queued, "Admitted") and not _is(queued, "Evicted"):
        return "preparing"
    if pods and queued is None:
        return "preparing"
    if queued is None and job in listed.jobs and not listed.jobs[job]["spec"]["suspend"]:
        return "preparing"
    return "queued"


def _state_of_pod(pod: Json, run: Run) -> str:
    status = pod["status"]
    if status["phase"] == "Succeeded":
        return "succeeded"
    if status["phase"] == "Failed":
        return "preparing" if _is(pod, "DisruptionTarget") else "failed"
    containers = status.get("containerStatuses", [])
    if not pod["spec"].get("nodeName") or not containers or "running" not in containers[0]["state"]:
        return "preparing"
    if run.spec["kind"] != "notebook":
        return "running"
    return "ready" if _is(pod, "Ready") and run.ready_at is not None else "starting"


def by_job(workloads: list[Json]) -> dict[str, Json]:
    return {one["metadata"]["ownerReferences"][0]["name"]: one for one in workloads}


def _pending(queue: Mapping[str, Json]) -> set[str]:
    """Jobs that hold no quota and have not come to an end."""
    return {job for job, one in queue.items() if not _is(one, "QuotaReserved") and not _is(one, "Finished")}


def _is(thing: Json, kind: str) -> bool:
    conditions: list[Any] = thing.get("status", {}).get("conditions", [])
    return any(one["type"] == kind and one["status"] == "True" for one in conditions)


def _is_on_a_node(pod: Json) -> bool:
    return bool(pod["spec"].get("nodeName")) and pod["status"]["phase"] not in OVER


def _units(pod: Json, resource: str) -> int:
    return sum(int(one["resources"].get("limits", {}).get(resource, 0)) for one in pod["spec"]["containers"])


def _holding(live: Json, slug: str) -> dict[str, Any]:
    return next((one for one in live["holdings"] if one["gpu_class"] == slug), {})
