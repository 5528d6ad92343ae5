"""The data of the scenario `waste`: eight runs hold all eight GPUs, and four of them use theirs.

Each step is an action of the portal by the user who would do it. When all runs have started, the dates of the portal's
rows are moved back, so that the runs have held their GPUs for hours; devcluster/demo/past.py does the same in the
cluster and in Prometheus. Needs Django.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from devcluster.demo.sample import history, launching, quota_setup
from devcluster.monitoring.profiles import IDLE, STEADY, VARIABLE

if TYPE_CHECKING:
    from accounts.core.actor import Actor
    from catalog.models import GpuClass
    from workloads.launch.types import LaunchSpec

GPU = "nvidia.com/gpu"
PRICE = Decimal("3.06")
# (owner, team, units, justification) of each team's quota.
HELD = (
    ("alice", "vision", 3, "Two trainings and their evaluation."),
    ("charlie", "serving", 2, "Two models for all users."),
    ("bob", "lab", 3, "Three parameter sweeps."),
)
# (team, who, name, what it does with its GPU). All are jobs: the server of a notebook would say that it was used when
# it started, a minute ago.
RUNS = (
    ("vision", "alice", "segmentation", STEADY),
    ("vision", "alice", "detection", STEADY),
    ("vision", "alice", "evaluation", IDLE),
    ("serving", "charlie", "translation", STEADY),
    ("serving", "charlie", "ranking", STEADY),
    ("lab", "bob", "sweep", IDLE),
    ("lab", "bob", "cell-tracking", IDLE),
    ("lab", "erin", "mask-review", IDLE),
)


def hold_all(by: Callable[[str], Actor]) -> None:
    """Creates what is missing, and waits until everything runs. It runs again at each start of the demo: what exists is
    not changed, and a deleted workload is not launched again. `by`: returns the actor for a name of the cast.
    """
    from catalog.classes import actions as class_actions
    from tenants.models import QuotaLine
    from workloads.models import Run

    gpu = _class()
    if not gpu.price_per_unit_hour:
        class_actions.edit_class(gpu.pk, by=by("olga"), price_per_unit_hour=PRICE)
    for owner, team, units, why in HELD:
        if not QuotaLine.objects.filter(request__tenant__slug=team, gpu_class=gpu).exists():
            asked = quota_setup.file_request(team, [(gpu.slug, units)], why, by=by(owner))
            quota_setup.approve_request(asked, by=by("dana"))
    for _, team, _, _ in HELD:
        wanted = [(_spec(name, profile), by(who)) for its, who, name, profile in RUNS if its == team]
        launching.launch_all(team, wanted)
    open_runs = Run.objects.filter(workload__name__in=[name for _, _, name, _ in RUNS], ended_at=None)
    launching.wait_until("start of all runs", lambda: not open_runs.filter(ready_at=None).exists())


def move_back(by: timedelta) -> None:
    """Does nothing if the runs are older already. No watcher may run: it would record the admissions again as they are
    in the cluster. Nor Prometheus: it does not have these hours yet, which the portal reads when it has started again.
    """
    from django.db.models import F
    from django.utils import timezone

    from cluster.models import AdmissionPeriod, Cluster
    from usage.telemetry.models import TelemetrySource
    from workloads.models import Run

    since = timezone.now() - by
    if Run.objects.filter(started_at__lt=since).exists():
        return
    # First: a worker that sees moved intervals looks for these admissions.
    AdmissionPeriod.objects.update(admitted_at=F("admitted_at") - by)
    history.move_back(by)
    read_until = {"read_until": since.replace(second=0, microsecond=0)}
    TelemetrySource.objects.update_or_create(cluster=Cluster.objects.get(), defaults=read_until)


def _class() -> GpuClass:
    from catalog.models import GpuClass

    return GpuClass.objects.get(resource=GPU, life_cycle=GpuClass.LifeCycle.ACTIVE)


def _spec(name: str, profile: str) -> LaunchSpec:
    from workloads.launch.options import Options
    from workloads.launch.types import LaunchSpec

    slug = _class().slug
    said = Options(env=((VARIABLE, profile),), checkpoints=True)
    return LaunchSpec(name, "job", slug, 1, "PyTorch", command=("python", f"{name}.py"), options=said)
