"""The portal's labels on objects outside the team's namespace have no effect: any user may set them on an own pod."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.client.jupyter import NotebookActivity, NotebookUnreachable
from cluster.client.kube import Kube
from cluster.models import AppliedObject, MirrorJob, MirrorPod
from portal.core.due import Deadline, owner_label
from tenants.models import Namespace
from tests.support.rows import running
from workloads.gateway import actions as gateway_actions
from workloads.gateway import queries
from workloads.gateway.authorization import GatewayDenial, NotebookUpstream, authorise
from workloads.launch import actions
from workloads.lifetime.idle import reconcile as idle_reconcile
from workloads.models import NotebookWatch, Run, Workload
from workloads.runs.reconcile import reconcile

pytestmark = pytest.mark.django_db
ELSEWHERE = "somebody-elses"


@pytest.fixture
def notebook(namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    """Alice's notebook. The mirror has its Job and pod in another namespace, with all the labels of the real ones."""
    GpuClass.objects.filter(pk=a100.pk).update(idle_stop_minutes=60)
    a100.refresh_from_db()
    found = running.workload(namespace_a, a100, by=alice)
    running.make_ready(found)
    Workload.objects.update(observed_generation=1)
    MirrorJob.objects.update(namespace=ELSEWHERE)
    MirrorPod.objects.update(namespace=ELSEWHERE)
    return found


def sent(notebook: Workload, result: str, *, ago: timedelta) -> None:
    """Records the result of sending the notebook's own Job."""
    AppliedObject.objects.create(
        cluster_id=notebook.namespace.cluster_id,
        owner=owner_label(notebook),
        kind="Job",
        namespace=notebook.namespace.name,
        name="one-1",
        uid="1",
        result=result,
        sent_at=timezone.now() - ago,
    )


def look(notebook: Workload, kube: Kube) -> Run:
    running.known(notebook.namespace.cluster_id)
    reconcile(Workload.objects.get(pk=notebook.pk), Deadline(), kube=kube)
    return Run.objects.get()


def test_a_run_does_not_end_with_a_job_elsewhere(notebook: Workload, kube_worker: Kube) -> None:
    sent(notebook, "applied", ago=-timedelta(minutes=1))  # the mirror will show it soon
    job = MirrorJob.objects.get()
    job.record["conditions"] = [
        {"type": "Failed", "status": "True", "reason": "", "message": "", "since": timezone.now().isoformat()}
    ]
    job.save()
    assert look(notebook, kube_worker).ended_at is None

    MirrorJob.objects.update(namespace=notebook.namespace.name)
    assert look(notebook, kube_worker).outcome == "failed"


@pytest.mark.parametrize("forged", [MirrorJob, MirrorPod])
def test_a_run_that_was_stopped_does_not_wait_for_what_is_elsewhere(
    notebook: Workload, by_alice: Actor, kube_worker: Kube, forged: type[MirrorJob] | type[MirrorPod]
) -> None:
    """Otherwise the run, or a deleted workload, would stay alive without a Job as long as the foreign object exists."""
    {MirrorJob: MirrorPod, MirrorPod: MirrorJob}[forged]._base_manager.all().delete()
    actions.delete("team-a", "one", by=by_alice)
    sent(notebook, "terminating", ago=timedelta(minutes=1))
    assert look(notebook, kube_worker).outcome == "stopped"
    assert Workload.objects.get().deleted_at is not None


def test_nobody_elsewhere_is_told_a_notebooks_token(namespace_a: Namespace, notebook: Workload) -> None:
    run = Run.objects.get()
    asked: list[str] = []

    def ask(ip: str, _token: str) -> NotebookActivity:
        asked.append(ip)
        raise NotebookUnreachable("It does not answer.")

    watch = NotebookWatch.objects.create(run=run)
    idle_reconcile.check_idle(watch, Deadline(), ask=ask)
    assert asked == []
    MirrorPod.objects.update(namespace=namespace_a.name)
    idle_reconcile.check_idle(watch, Deadline(), ask=ask)
    assert asked == [running.IP]


def test_nobody_elsewhere_is_opened_as_a_notebook(namespace_a: Namespace, notebook: Workload, alice: User) -> None:
    browser = Client()
    browser.force_login(alice)
    MirrorPod.objects.update(namespace=namespace_a.name)
    MirrorJob.objects.update(namespace=namespace_a.name)
    address = browser.post("/teams/team-a/workloads/one/open")["Location"]
    cookie = gateway_actions.redeem_ticket(parse_qs(urlsplit(address).query)["ticket"][0], origin=notebook.origin)
    assert isinstance(authorise(notebook.origin, [cookie]), NotebookUpstream)

    MirrorPod.objects.update(namespace=ELSEWHERE)
    assert authorise(notebook.origin, [cookie]) is GatewayDenial.NOT_READY


def test_a_log_elsewhere_is_not_a_runs(namespace_a: Namespace, notebook: Workload, by_alice: Actor) -> None:
    assert queries.log_source(by_alice, "team-a", "one") == (namespace_a.name, None)
    MirrorPod.objects.update(namespace=namespace_a.name)
    _namespace, source = queries.log_source(by_alice, "team-a", "one")
    assert source is not None
