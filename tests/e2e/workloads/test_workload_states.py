"""A workload's page while it waits, is stuck, ready, about to start again, and stopped; volumes and secrets."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.models import MirrorJob, MirrorPod, MirrorWorkload
from tenants.models import Namespace
from tests.e2e.accessibility import look_at
from tests.support.rows import make, mirrored, running
from tests.support.rows.running import container
from workloads.credentials.secrets import actions as secret_actions
from workloads.launch import actions
from workloads.lifetime.idle import reconcile as idle_reconcile
from workloads.models import Run, Volume, Workload
from workloads.runs import restart
from workloads.storage import actions as storage_actions

pytestmark = pytest.mark.browser
PAGE = "/teams/team-a/workloads/one"
NEEDED = (
    "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor a100-1, "
    "1 more needed"
)


@pytest.fixture
def one(namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    """A notebook with a volume, whose pod is on a node and ready."""
    make.grant(namespace_a.tenant, a100, units=2)
    GpuClass.objects.filter(pk=a100.pk).update(run_hours_limit=12, idle_stop_minutes=60)
    a100.refresh_from_db()
    mirrored.hardware_seen(a100.cluster)
    volume = Volume.objects.create(namespace=namespace_a, name="retina-2026", size_gib=200)
    found = running.workload(
        namespace_a,
        a100,
        by=alice,
        volume=volume,
        options={"run_hours": 8},
        image="quay.io/jupyter/scipy-notebook:2025",
    )
    running.make_ready(found)
    Run.objects.update(ends_at=timezone.now() + timedelta(hours=7, minutes=30))
    return found


def wait_in_the_queue(one: Workload) -> None:
    """As it was before: its job is suspended, and no unit is left for it."""
    Run.objects.update(admitted_at=None, started_at=None, ready_at=None, ends_at=None)
    MirrorPod.objects.all().delete()
    job = MirrorJob.objects.get()
    MirrorJob.objects.update(record={**job.record, "suspend": True, "active": 0, "ready": 0})
    at = timezone.now().isoformat()
    pending = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": NEEDED, "since": at}
    MirrorWorkload.objects.create(
        cluster_id=one.namespace.cluster_id,
        namespace=one.namespace.name,
        name="job-one-1",
        uid="queued",
        owner=job.owner,
        created_at=timezone.now(),
        resource_version=1,
        queue="main",
        job_uid=job.uid,
        record={
            "active": True,
            "conditions": [pending],
            "priority": 0,
            "priority_class": "",
            "cluster_queue": "",
            "flavors": {},
            "usage": {},
            "pods": 0,
            "checks": {},
            "requeue_count": 0,
            "requeue_at": None,
            "evictions": {},
            "preemptions": 0,
        },
    )


def test_while_it_waits(one: Workload, alice: User, open_page: Callable[..., Page]) -> None:
    wait_in_the_queue(one)
    page = open_page(PAGE, as_user=alice)
    expect(
        page.get_by_text("1st in your team's queue. Waiting for quota: 1 unit of A100 80GB whole card")
    ).to_be_visible()
    look_at(page)


def test_where_it_is_stuck(one: Workload, alice: User, open_page: Callable[..., Page]) -> None:
    said = 'Back-off pulling image "quay.io/jupyter/no-such-notebook:2025": ErrImagePull: manifest unknown'
    Run.objects.update(started_at=None, ready_at=None, ends_at=None)
    pod = MirrorPod.objects.get()
    main = container("notebook", "waiting", reason="ImagePullBackOff", message=said)
    bound = [one for one in pod.record["conditions"] if one["type"] != "Ready"]
    bound.append({**bound[0], "type": "PodReadyToStartContainers"})
    MirrorPod.objects.update(phase="Pending", record={**pod.record, "containers": [main], "conditions": bound})
    page = open_page(PAGE, as_user=alice)
    expect(page.locator(".step-stuck b").first).to_have_text("Image")
    expect(page.get_by_role("button", name="Keep")).to_have_count(0)
    expect(page.get_by_text("Blocked").first).to_be_visible()
    expect(page.get_by_role("link", name="Restart or change…")).to_be_visible()
    look_at(page)


def test_when_it_is_ready(one: Workload, alice: User, open_page: Callable[..., Page]) -> None:
    idle_reconcile.start_watch(one.runs.get())
    page = open_page(PAGE, as_user=alice)
    expect(page.get_by_role("button", name="Open")).to_be_enabled()
    look_at(page)
    look_at(open_page("/teams/team-a/workloads/one/change", as_user=alice))


def test_when_another_run_follows(one: Workload, alice: User, open_page: Callable[..., Page]) -> None:
    restart.restart("team-a", "one", by=Actor(alice, via="page"))
    page = open_page(PAGE, as_user=alice)
    expect(page.get_by_text("Then it restarts with its current configuration.").first).to_be_visible()
    look_at(page)
    expect(page.get_by_text("This notebook is stopping.")).to_be_visible()
    expect(page.get_by_role("region", name="Limits")).to_have_count(0)
    page.get_by_role("button", name="Cancel restart").click()
    expect(page.get_by_role("button", name="Restart when stopped")).to_be_visible()


def test_when_it_is_stopped(one: Workload, alice: User, open_page: Callable[..., Page]) -> None:
    now = timezone.now()
    message = "JupyterLab was killed: it used more than its 64 GiB of memory (exit code 137)."
    Run.objects.update(ended_at=now, outcome="failed", reason="out_of_memory", message=message, exit_code=137)
    actions.start("team-a", "one", by=Actor(alice, via="page"))
    Run.objects.filter(number=2).update(ended_at=now, outcome="stopped", reason="stopped", message="Stopped.")
    MirrorPod.objects.all().delete()
    page = open_page(PAGE, as_user=alice)
    expect(page.get_by_role("button", name="Start again")).to_be_visible()
    expect(page.get_by_role("region", name="Earlier runs")).to_contain_text("64 GiB")
    expect(page.get_by_text("not reached")).to_have_count(6)
    expect(page.get_by_text("not yet")).to_have_count(0)
    look_at(page)


def test_volumes_in_use_and_on_their_way_out(
    one: Workload, namespace_a: Namespace, alice: User, open_page: Callable[..., Page]
) -> None:
    by = Actor(alice, via="page")
    for name in ("checkpoints", "old-data-of-the-course"):
        Volume.objects.create(namespace=namespace_a, name=name, size_gib=50)
    storage_actions.request_delete("team-a", "old-data-of-the-course", by=by)
    look_at(open_page("/teams/team-a/volumes", as_user=alice))
    page = open_page("/teams/team-a/launch?volume=old-data-of-the-course", as_user=alice)
    look_at(page)
    page.get_by_role("button", name="Cancel deletion and attach").click()
    expect(page.get_by_text("old-data-of-the-course is kept.")).to_be_visible()
    expect(page.locator("[name=volume]")).to_have_value("old-data-of-the-course")


def test_secrets_that_are_kept(one: Workload, alice: User, open_page: Callable[..., Page]) -> None:
    for name in ("WANDB_API_KEY", "HUGGING_FACE_HUB_TOKEN_OF_THE_WHOLE_DEPARTMENT"):
        secret_actions.put_secret("team-a", name, "a value", by=Actor(alice, via="page"))
    look_at(open_page("/teams/team-a/secrets", as_user=alice))
    look_at(open_page("/teams/team-a/launch", as_user=alice))
