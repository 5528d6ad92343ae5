"""A portal in use, made of rows: a team with much history, a long queue, an inbox, notices."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from accounts.models import Event, Notice, NoticeKind, Role, User
from catalog.models import GpuClass, Image
from cluster.models import Cluster
from tenants.models import Membership, Namespace, Tenant
from tests.load import long_queue
from tests.support.rows import homes, inbox, make, mirrored
from tests.usage.telemetry.rows import hold, hour_row
from usage.telemetry.class_hours import sum_up
from usage.telemetry.models import RunHour, TelemetrySource
from workloads.launch import spec as launch_spec
from workloads.models import Run, Workload

# Of `nightly`.
RUNS = 500
# Of the 200 workloads that a team may have.
ENDED_WORKLOADS = 120
QUEUED = 60
RUNNING = 6
# For which these hold their units.
HOURS = 60
HOUR = timedelta(hours=1)
PENDING = 60
EVENTS = 500
NOTICES = 60
OUTCOMES = (Run.Outcome.SUCCEEDED, Run.Outcome.FAILED, Run.Outcome.STOPPED)


@dataclass(frozen=True)
class BusyTeam:
    """Alice owns the team, Dana decides requests, Olga operates. `nightly` has had all its runs, `lab-0` is ready."""

    team: Tenant
    namespace: Namespace
    gpu_class: GpuClass
    alice: User
    dana: User
    olga: User


def busy_team(
    cluster: Cluster, *, runs: int = RUNS, ended: int = ENDED_WORKLOADS, queued: int = QUEUED, pending: int = PENDING
) -> BusyTeam:
    mirrored.hardware_seen(cluster)
    gpu_class = make.gpu_class(cluster, promise_limit=1000)
    make.gpu_class(cluster, slug="h100", name="H100 80GB whole card", product="NVIDIA-H100-80GB-HBM3")
    Image.objects.create(name="PyTorch", reference="docker.io/pytorch/pytorch:2.9.1", kind="job")
    alice, dana, olga = make.user("Alice"), make.approver("Dana"), make.user("Olga", roles=[Role.OPERATOR])
    team = make.tenant(cluster, slug="vision", namespace=f"vision-{cluster.cohort.removeprefix('gpu-portal-')}")
    make.member(team, alice, Membership.Role.OWNER)
    make.grant(team, gpu_class, units=16)
    namespace = team.namespaces.get()
    _ended(namespace, gpu_class, alice, ended, runs)
    long_queue.wait(namespace, gpu_class, by=alice, number=queued)
    labs = [homes.ready(namespace, gpu_class, f"lab-{n}", alice, minutes_ago=HOURS * 60 + n) for n in range(RUNNING)]
    _measured(labs[0])
    # Not seconds ago: what is counted here does not depend on when the page is seen.
    Run.objects.filter(ended_at=None).update(requested_at=timezone.now() - (HOURS + 1) * HOUR)
    inbox.many(cluster, gpu_class, alice, pending)
    _told(team, alice)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return BusyTeam(team, namespace, gpu_class, alice, dana, olga)


def _ended(namespace: Namespace, gpu_class: GpuClass, by: User, number: int, runs: int) -> None:
    """As many workloads that have ended, and one, `nightly`, with as many runs."""
    common: dict[str, Any] = {"tenant": namespace.tenant, "namespace": namespace, "gpu_class": gpu_class}
    common |= {"created_by": by, "kind": "job", "units": 1, "image": "image", "due_at": None}
    names = ["nightly", *(f"train-{n}" for n in range(number))]
    found = Workload.objects.bulk_create(Workload(name=name, origin=f"e{name}", **common) for name in names)
    spec, now = launch_spec.frozen_spec(found[0], 1).to_json(), timezone.now()
    many = [(found[0], n + 1) for n in range(runs)] + [(one, 1) for one in found[1:]]
    Run.objects.bulk_create(
        Run(
            workload=workload,
            number=n,
            requested_by=by,
            spec={**spec, "workload": workload.name},
            outcome=OUTCOMES[at % len(OUTCOMES)],
            admitted_at=now - timedelta(hours=at + 2),
            started_at=now - timedelta(hours=at + 2),
            ended_at=now - timedelta(hours=at + 1),
        )
        for at, (workload, n) in enumerate(many)
    )


def _measured(run: Run) -> None:
    """The charts of a run, its team and its class have something to draw."""
    assert run.started_at is not None
    hold(run, run.started_at)
    cluster = run.workload.namespace.cluster
    minute = timezone.now().replace(second=0, microsecond=0)
    hours = [minute.replace(minute=0) - back * HOUR for back in range(1, HOURS)]
    RunHour.objects.bulk_create(hour_row(run, hour, (1 << 60) - 1, 60) for hour in hours)
    TelemetrySource.objects.create(cluster=cluster, read_until=minute)
    sum_up(cluster.pk, set(hours))


def _told(team: Tenant, to: User) -> None:
    verbs = ("workload.launched", "workload.stopped", "member.added", "namespace.changed")
    what = {"actor": to.name, "actor_id": to.pk, "via": "page", "tenant": team.slug, "row": f"tenants.tenant.{team.pk}"}
    found = Event.objects.bulk_create(Event(verb=verbs[n % len(verbs)], name=team.slug, **what) for n in range(EVENTS))
    Notice.objects.bulk_create(
        Notice(user=to, event=event, kind=NoticeKind.STOPPED, subject=f"train-{n} was stopped", link="/notices")
        for n, event in enumerate(found[:NOTICES])
    )
