"""Reads about workloads: facts for policy, and one frozen row for page, stream and API alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from accounts.actor import Actor
from catalog import life_cycle
from catalog.models import GpuClass
from catalog.queries import successor_of
from cluster import names
from cluster import queries as mirror
from cluster.models import AppliedObject, Cluster, MirrorNode
from cluster.observed import AsOf, Pod
from portal.due import label
from portal.errors import get_or_refuse
from portal.sql import select
from tenants import promises
from tenants.models import Grant, Namespace, TermsAccepted
from tenants.queries import promise_of
from tenants.queries.grants import Held, held
from tenants.queries.visibility import may_use
from workloads import kept, policy, progress, unheard, workers
from workloads.explain import Sealed, SignIn
from workloads.interruption import Exposure, Interrupted
from workloads.models import Run, Workload
from workloads.phase import WAITING, Status, status
from workloads.queries.estimates import Told, estimates_of
from workloads.queries.interruptions import Shown, exposures, interruptions
from workloads.queries.latest import last_runs
from workloads.queries.latest import latest as latest
from workloads.queries.latest import read as read
from workloads.queries.latest import with_names as with_names
from workloads.queries.membership import locked as locked
from workloads.queries.membership import named as named
from workloads.queries.membership import newest as newest
from workloads.queries.membership import team as team
from workloads.queries.nodes import with_nodes
from workloads.queries.reaching import has_reached as has_reached
from workloads.queries.seeing import WantedImage, see
from workloads.seen import Seen, log_container
from workloads.wish import Wish

# What says whether work goes on; where it stands in the queue is in Kueue's own kind.
KINDS_NEEDED = ("Job", "Pod")


def kinds_shown(cluster: Cluster) -> tuple[str, ...]:
    """What the state of work is told from. Without Kueue its kind is not followed."""
    return (*KINDS_NEEDED, "Workload") if cluster.queue_system == Cluster.QueueSystem.KUEUE else KINDS_NEEDED


# ---- facts for policy ----------------------------------------------------------------------------------------------


def class_facts(namespace: Namespace, gpu_class: GpuClass, *, units: int, by: Actor) -> policy.ClassFacts:
    """One query; one more each for terms and for a class that not everybody may use, two when the units might not fit
    on one node.
    """
    granted = most_promised(namespace.tenant_id, [gpu_class.pk]).get(gpu_class.pk, 0)
    found = facts_of(gpu_class, granted, units)
    return replace(
        found,
        is_usable=may_use(namespace.tenant_id, gpu_class),
        terms_accepted=gpu_class.pk in accepted(by, [gpu_class]),
    )


def accepted(by: Actor, classes: Iterable[GpuClass]) -> set[int]:
    """Ids of those whose terms, as they are now, this person has accepted. No query when none has terms, else one."""
    versions = {one.pk: one.terms_version for one in classes if one.terms_version}
    if not versions:
        return set()
    rows = TermsAccepted.objects.filter(user_id=by.user_id or 0, gpu_class_id__in=versions)
    return {pk for pk, version in rows.values_list("gpu_class_id", "version") if versions[pk] == version}


def facts_of(gpu_class: GpuClass, granted: int, units: int) -> policy.ClassFacts:
    """`granted`: the most units promised at any instant from now on. Without what depends on a person or a team; one
    query for the name of a successor that was not read along.
    """
    is_active = gpu_class.life_cycle == GpuClass.LifeCycle.ACTIVE
    return policy.ClassFacts(
        slug=gpu_class.slug,
        name=gpu_class.name,
        life_cycle=gpu_class.life_cycle,
        granted=granted,
        borrowing_limit=gpu_class.borrowing_limit,
        units_per_workload=gpu_class.units_per_workload,
        node_units=node_units(gpu_class) if units > 1 else None,
        cpu_per_unit=gpu_class.cpu_per_unit,
        memory_gib_per_unit=gpu_class.memory_gib_per_unit,
        kinds=gpu_class.kinds,
        successor="" if is_active else successor_of(gpu_class),
        terms_version=gpu_class.terms_version,
        run_hours_limit=gpu_class.run_hours_limit,
        is_storage=gpu_class.is_storage,
    )


def most_promised(tenant_id: int, class_ids: Sequence[int]) -> dict[int, int]:
    """By class id: the most units that the tenant is promised at any instant from now on. One query."""
    now = timezone.now()
    found: dict[int, list[promises.Promise]] = {}
    for grant in Grant.objects.filter(tenant_id=tenant_id, gpu_class_id__in=class_ids, period__endswith__gt=now):
        found.setdefault(grant.gpu_class_id, []).append(promise_of(grant))
    return {pk: peak(theirs, now) for pk, theirs in found.items()}


def peak(theirs: Sequence[promises.Promise], now: datetime) -> int:
    return promises.peak(theirs, now, max((promise.end for promise in theirs), default=now))


def node_units(gpu_class: GpuClass) -> int | None:
    """The most units that one node of the class has, in use or not; None when nobody knows. Two queries.

    No node at all is unknown as well: one may come, or come back.
    """
    is_counted = gpu_class.interface == GpuClass.Interface.DEVICE_PLUGIN
    if not is_counted or not mirror.is_known(gpu_class.cluster_id, "Node"):
        return None
    statement = f"""
        SELECT max((record -> 'capacity' ->> %s)::bigint) FROM {MirrorNode._meta.db_table}
         WHERE cluster_id = %s AND record -> 'labels' @> %s::jsonb"""
    with connection.cursor() as cursor:
        labels = GpuClass._meta.get_field("node_labels").get_db_prep_value(gpu_class.node_labels, connection)
        cursor.execute(statement, [gpu_class.resource, gpu_class.cluster_id, labels])
        found = cursor.fetchone()[0]
    return int(found) if found else None


def run_facts(workload: Workload, run: Run | None) -> policy.RunFacts:
    return policy.RunFacts(
        is_over=run is None or run.ended_at is not None,
        is_stopping=run is not None and run.stop_requested_at is not None,
        is_ready=run is not None and run.ready_at is not None and run.ended_at is None,
        is_deleting=workload.delete_requested_at is not None,
        created_by=workload.created_by_id,
    )


def last_run(workload: Workload) -> Run | None:
    return Run.objects.filter(workload=workload).order_by("-number").first()


# ---- what is shown -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WorkloadRow:
    """A workload with its current run's status: what list, page, stream and API show.

    `gpu_class`: of the run; the workload may have been declared with another one since. Without a run, the declared.
    `as_of`: how current the mirror was when this was read. `estimate`: of what waits for a start. `exposure`: how what
    is not over may be interrupted, None while nobody knows; `interrupted`: how it was last.
    """

    workload: Workload
    run: Run | None
    gpu_class: GpuClass
    status: Status
    steps: tuple[progress.Step, ...]
    pod: Pod | None
    as_of: AsOf
    pods: tuple[Pod, ...] = ()
    estimate: Told | None = None
    exposure: Exposure | None = None
    interrupted: Interrupted | None = None

    @property
    def is_in_line(self) -> bool:
        """It waits for a place. What is blocked on a node has its place; what was put back has none, though its pod may
        still be on its way out.
        """
        pod = self.pod
        stays = pod is not None and pod.is_on_a_node and pod.deleting_since is None
        return self.status.phase in WAITING and not stays

    @property
    def units_on_nodes(self) -> int:
        """Of its pods that are bound to a node and not over, those on their way out included."""
        bound = sum(pod.is_on_a_node for pod in self.pods)
        return bound * self.run.units_each if self.run else 0


def of_tenant(by: Actor, slug: str) -> QuerySet[Workload]:
    """Undeleted workloads of a tenant that the actor may see; a stranger's list is empty."""
    return Workload.objects.visible_to(by).filter(tenant__slug=slug)


def rows(workloads: Iterable[Workload], as_of: AsOf | None = None, own: Held | None = None) -> list[WorkloadRow]:
    """Status of each, all of one namespace, whatever their number, in eight queries: one more when a run has a class
    that no workload is declared with any more, when one is on a node, when one has a place in the queue, when one waits
    for its image or for a node, and when one was interrupted; one more when one waits for units, three when others that
    are not among them do or hold some. They come `with_names`. `as_of`, `own`: how current the mirror was and what the
    team is granted, where that was read already.
    """
    found = list(workloads)
    if not found:
        return []
    runs = last_runs(found)
    classes = _classes_of_runs(found, runs)
    run_names = {workload.pk: _run_name(workload, runs.get(workload.pk)) for workload in found}
    sent, signs_in = _sent(run_names)
    now = timezone.now()
    namespace = found[0].namespace
    as_of = as_of or mirror.as_of(namespace.cluster_id, *kinds_shown(namespace.cluster))
    images = {pk: WantedImage.of(run) for pk, run in runs.items() if not run.started_at and not run.ended_at}
    seen = with_nodes(namespace.cluster_id, see(namespace, run_names, images), runs) if as_of.is_known else None
    shown = []
    alive: list[Shown] = []
    for workload in found:
        run = runs.get(workload.pk)
        gpu_class = classes.get(run.spec["gpu_class"], workload.gpu_class) if run else workload.gpu_class
        wish = wish_of(workload, run, gpu_class, sent.get(workload.pk), signs_in=workload.pk in signs_in)
        theirs = None if seen is None else seen.get(workload.pk, Seen())
        told = status(wish, theirs, now=now, as_of=as_of, is_deleting=workload.delete_requested_at is not None)
        if run is not None:
            unheard.count(told.explained, run_id=run.pk)
            if theirs is not None and run.ended_at is None:
                alive.append(Shown(run, gpu_class, theirs))
        pod = theirs.pod if theirs else None
        pods = theirs.pods if theirs else ()
        shown.append(WorkloadRow(workload, run, gpu_class, told, progress.steps(wish, theirs, told), pod, as_of, pods))
    if not alive:
        return shown
    own = own or held(namespace.tenant_id, now)
    starts = estimates_of(namespace, shown, own, alive)
    may_be, was = exposures(namespace, alive, own), interruptions(alive)
    return [
        replace(
            row,
            estimate=starts.get(row.workload.pk),
            exposure=may_be.get(row.run.pk) if row.run else None,
            interrupted=was.get(row.run.pk) if row.run else None,
        )
        for row in shown
    ]


def _classes_of_runs(workloads: Iterable[Workload], runs: Mapping[int, Run]) -> dict[str, GpuClass]:
    """By slug. A query only when some run has a class that no workload is declared with any more."""
    found = {workload.gpu_class.slug: workload.gpu_class for workload in workloads}
    missing = {run.spec["gpu_class"] for run in runs.values()} - found.keys()
    if missing:
        cluster_id = next(iter(found.values())).cluster_id
        found |= {one.slug: one for one in GpuClass.objects.filter(cluster_id=cluster_id, slug__in=missing)}
    return found


def earlier_runs(row: WorkloadRow) -> list[Run]:
    """The latest 20 before the one of this row, newest first. One query, none of a first run."""
    if row.run is None or row.run.number == 1:
        return []
    return list(Run.objects.filter(workload=row.workload, number__lt=row.run.number).order_by("-number")[:20])


def wish_of(
    workload: Workload, run: Run | None, gpu_class: GpuClass, sent: AppliedObject | None, *, signs_in: bool
) -> Wish | None:
    if run is None:
        return None
    registry = run.spec.get("registry")
    return Wish(
        kind=workload.kind,
        class_name=gpu_class.name,
        class_slug=run.spec["gpu_class"],
        units=run.spec["units"],
        image=run.spec["image"],
        number=run.number,
        requested_at=run.requested_at,
        is_deleting=workload.delete_requested_at is not None,
        has_volume=bool(run.spec["claim"]),
        has_repository=bool(run.spec.get("repository")),
        sign_in=SignIn(registry, signs_in) if registry else None,
        sent=sent.result if sent else "",
        sent_at=sent.sent_at if sent else None,
        sent_text=sent.text if sent else "",
        problem=workload.error_code,
        problem_text=workload.error_text,
        sealed=Sealed.of(workload.error_code, workload.error_text, run.spec.get("secrets", ())),
        hold=life_cycle.hold(gpu_class, now=timezone.now()),
        stop_requested_at=run.stop_requested_at,
        is_followed=run.next_wanted_by_id is not None,
        admitted_at=run.admitted_at,
        started_at=run.started_at,
        ready_at=run.ready_at,
        ended_at=run.ended_at,
        outcome=run.outcome,
        reason=run.reason,
        message=run.message,
        exit_code=run.exit_code,
        preemptions=run.preemptions,
        kept=kept.from_json(run.kept),
        asked={"cpu": str(run.spec["cpu"]), "memory": f"{run.spec['memory_gib']}Gi"},
        workers=run.workers,
        retries=run.spec.get("retries", 0),
    )


def job_name(workload: Workload, run: Run) -> str:
    return names.run_name(workload.name, run.number)


def _run_name(workload: Workload, run: Run | None) -> str:
    return job_name(workload, run) if run else ""


def _sent(runs: Mapping[int, str]) -> tuple[dict[int, AppliedObject], set[int]]:
    """By workload id: what became of the Job of its run of that name; Jobs of earlier runs may still be kept. And the
    ids of those whose pod can sign in to its registry. One query.
    """
    owners = {f"{label(Workload)}.{pk}": pk for pk in runs}
    pulls = [names.pull_secret(name) for name in runs.values() if name]
    found = select(
        AppliedObject,
        "owner = ANY(%s) AND (kind = 'Job' OR kind = 'Secret' AND name = ANY(%s) AND result = %s)",
        [list(owners), pulls, AppliedObject.Result.APPLIED],
    )
    jobs = {owners[row.owner]: row for row in found if row.kind == "Job" and row.name == runs[owners[row.owner]]}
    return jobs, {owners[row.owner] for row in found if row.kind == "Secret"}


# ---- for the doors process -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogSource:
    """Which container's log is a run's."""

    namespace: str
    pod: str
    container: str


def log_source(by: Actor, tenant: str, name: str, worker: int | None = None) -> tuple[str, LogSource | None]:
    """The namespace, and where this worker of the last run writes; None when it has no pod. Raises Refused (404).

    Nobody said which: the one by whose end the run failed, else the first.
    """
    rows_ = Workload.objects.visible_to(by).filter(tenant__slug=tenant).select_related("namespace")
    workload = get_or_refuse(rows_, name=name)
    run = last_run(workload)
    namespace = workload.namespace
    if run is None:
        return namespace.name, None
    owner = f"{label(Workload)}.{workload.pk}"
    pods = mirror.pods(namespace.cluster_id, namespace=namespace.name, owner=owner, run=job_name(workload, run))
    if worker is None:
        worker = workers.asked_first(pods)
    theirs = workers.by_worker(pods).get(worker, ())
    started = [(pod.name, container) for pod in theirs if (container := log_container(pod))]
    if not started:
        return namespace.name, None
    return namespace.name, LogSource(namespace.name, *started[-1])
