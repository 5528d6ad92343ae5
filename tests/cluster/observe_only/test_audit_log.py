"""A week in which the portal only observes: the audit log of a real API server holds no write by its identities.

Before and after that week the same workers write, so the log would show what they send.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import User
from catalog.classes import actions as class_actions
from catalog.models import GpuClass, Pool
from cluster import tasks
from cluster.client.kube import connect
from cluster.models import AppliedObject, Cluster
from cluster.observe_only.actions import set_observe_only
from cluster.observe_only.queries import waiting_work
from devcluster.client.kube import Api
from devcluster.client.kubeconfig import read_kubeconfig
from operations.maintenance import actions as maintenance_actions
from operations.models import Maintenance, MaintenanceNode
from portal.celery import app
from portal.core import due
from tenants.models import Namespace, Tenant
from tenants.requests.actions import file_request
from tenants.requests.types import RequestedLine
from tests.cluster.observe_only.days import let_pass
from tests.support.cluster.audit_log import AuditLog
from tests.support.cluster.second_api_server import second_api_server
from tests.support.processes.preloaded import watch
from tests.support.processes.watchers import is_current
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.situations.test_problems_live import cpu
from workloads.launch import actions as launch_actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Volume, Workload
from workloads.storage.policy import GRACE

pytestmark = pytest.mark.django_db(transaction=True)

# Fixtures of other modules, by name.
__all__ = ["cpu"]

OWN_APPS = ("tenants", "workloads", "catalog", "operations", "cluster")
DAY = timedelta(days=1)
# Every table whose reconciler writes to the cluster.
WRITERS = {"Namespace", "Plan", "Pool", "Workload", "Volume", "Maintenance"}


@pytest.fixture
def audit(
    services: dict[str, Any], tmp_path: Path, cluster: Cluster, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AuditLog]:
    """Worker (this process) and watcher use an API server that logs both; no other process uses it."""
    log = AuditLog(tmp_path)
    log.write_policy("worker", "watcher")

    with second_api_server(services, tmp_path, log.flags) as server:

        def through(identity: str) -> str:
            token = read_kubeconfig(Path(services["kubeconfigs"][identity]))["user"]["token"]
            return str(server.kubeconfig_of(token, f"kubeconfig-{identity}"))

        settings.PORTAL_KUBECONFIG = through("worker")
        monkeypatch.setattr("cluster.client.fence._fence.is_required", False)
        connect.cache_clear()
        watcher_log = tmp_path / "watcher.log"
        process = watch(kubeconfig=through("watcher"), log=watcher_log)
        try:
            wait_until(lambda: is_current(cluster), within_s=90, story=watcher_log.read_text)
            yield log
        finally:
            process.kill()
            process.wait(10)
            connect.cache_clear()


def own_tasks() -> list[str]:
    app.loader.import_default_modules()
    return sorted(name for name in app.tasks if not name.startswith("celery."))


def work() -> None:
    """Every task of every app, as beat and hints start them; first all rows that could be due are."""
    for model in due.due_models():
        due.wake(model, model._base_manager.values_list("pk", flat=True))
    for name in own_tasks():
        app.tasks[name].run()


def works(until: Callable[[], object], what: str) -> None:
    def step() -> bool:
        work()
        return bool(until())

    wait_until(step, within_s=120, what=what)


def test_beat_starts_only_tasks_that_are_run_here() -> None:
    assert {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()} <= set(own_tasks())


def test_a_week_without_a_write(
    audit: AuditLog, cluster: Cluster, team_a: Tenant, namespace_a: Namespace, a100: GpuClass, cpu: GpuClass,
    job: LaunchSpec, by_alice: Actor, olga: User, admin: Api, clean_cluster: None, unique: str,
) -> None:  # fmt: skip
    by, wanted = Actor(olga, "page"), replace(job, gpu_class=cpu.slug)
    Pool.objects.create(cluster=cluster)
    make.grant(team_a, cpu, units=4)
    make.grant(team_a, a100, units=1, until=timezone.now() + 3 * DAY)
    # The control: the same workers, and they may write.
    tasks.refuse_without_fence()
    works(lambda: Namespace.objects.get(pk=namespace_a.pk).applied_as_of, "the team's namespace")
    for name in ("one", "two"):
        launch_actions.launch("team-a", replace(wanted, name=name), by=by_alice)
    works(lambda: Run.objects.filter(started_at__isnull=False).count() == 2, "both runs")
    launch_actions.launch("team-a", replace(wanted, name="keeps", volume="data", volume_gib=1), by=by_alice)
    works(lambda: AppliedObject.objects.filter(kind="PersistentVolumeClaim").exists(), "the claim of the volume")
    control = audit.writes()
    assert Counter(who for who, _verb, _address in control).keys() == {"worker"}
    assert {"create", "patch"} <= {verb for _who, verb, _address in control}

    set_observe_only(cluster, wanted=True, by=by)
    begins = len(audit.events())
    tasks.refuse_without_fence()
    team_b = make.tenant(cluster, slug="team-b", namespace=f"team-b-{unique}")
    make.grant(team_b, cpu, units=2)
    end = timezone.now() + 30 * DAY
    lines = [RequestedLine(gpu_class=a100.slug, units=1, starts=timezone.now(), ends=end, kind="boost")]
    file_request("team-a", lines=lines, justification="For the paper.", by=by_alice)
    launch_actions.launch("team-a", replace(wanted, name="three"), by=by_alice)
    launch_actions.stop("team-a", "one", by=by_alice)
    Volume.objects.update(delete_requested_at=timezone.now() - GRACE)
    class_actions.hold_class(a100.pk, reason="A driver.", until=None, by=by)
    now = timezone.now()
    maintenance_actions.plan_maintenance(
        cluster, ["a100-2"], kind="hardware", reason="A fan.", holds_from=now, starts_at=now + DAY,
        ends_at=now + 9 * DAY, by=by,
    )  # fmt: skip
    for day in range(7):
        work()
        assert let_pass(DAY, apps_moved=OWN_APPS)
        if day == 3:
            make.close(f"team-b-{unique}")
            launch_actions.delete("team-a", "two", by=by_alice)
            class_actions.release_class(a100.pk, by=by)
        work()
    wait_until(lambda: is_current(cluster), what="the mirror follows after the week")

    assert audit.writes(after=begins) == []
    assert audit.readers(after=begins) == {"worker", "watcher"}, "both were at work"
    waiting = {model.__name__ for model in due.due_models() if model._base_manager.filter(error_code="observe_only")}
    assert waiting == WRITERS
    assert waiting_work().count >= len(WRITERS)
    assert {"one-1", "two-1"} <= {
        one["metadata"]["name"] for one in admin.list("batch/v1/jobs", namespace=namespace_a.name)
    }
    assert admin.find("v1/namespaces", f"team-b-{unique}") is None
    assert not admin.find("v1/nodes", "a100-2")["spec"].get("unschedulable")  # type: ignore[index]

    # What waited is done, without the node, which other tests use.
    Volume.objects.update(delete_requested_at=None)
    MaintenanceNode.objects.all().delete()
    Maintenance.objects.all().delete()
    set_observe_only(cluster, wanted=False, by=by)
    works(lambda: Run.objects.get(workload__name="one").ended_at, "the stop that waited")
    assert "delete" in {verb for _who, verb, _address in audit.writes(after=begins)}
    assert not Workload.objects.filter(error_code="observe_only").exists()
