"""On the real control plane: a run is preempted, queued, admitted again and stopped. An independent reader adds up the
times of the Workload's conditions; the intervals have the same sum, whether or not a worker looked in between.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.core.actor import Actor
from cluster.models import MirrorWorkload
from devcluster.client.kube import Api
from devcluster.client.list_watch import ListWatch
from devcluster.kubelet.scripted import ScriptedKubelet
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker
from tests.support.waiting import wait_until
from workloads.allocations import recording
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec
from workloads.models import AllocationInterval, Run, Workload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]


class Reader:
    """Adds up how long the Workloads of one Job were admitted: from Admitted=True to Admitted=False, Finished or the
    deletion.
    """

    def __init__(self, admin: Api, namespace: str, job: str) -> None:
        self._watch = ListWatch(admin, "kueue.x-k8s.io/v1beta2/workloads", namespace=namespace)
        self._job = job
        self.periods: dict[str, str | None] = {}
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for what, found in self._watch:
            owners = found["metadata"].get("ownerReferences") or [{}]
            if owners[0].get("name") != self._job:
                continue
            conditions = {one["type"]: one for one in found.get("status", {}).get("conditions", [])}
            admitted, finished = conditions.get("Admitted"), conditions.get("Finished")
            if what == "DELETED":
                self._close(found["metadata"].get("deletionTimestamp"))
            elif admitted and admitted["status"] == "True":
                self.periods.setdefault(admitted["lastTransitionTime"], None)
                if finished and finished["status"] == "True":
                    self._close(finished["lastTransitionTime"])
            elif admitted:
                self._close(admitted["lastTransitionTime"])

    def _close(self, at: str) -> None:
        self.periods = {start: end or at for start, end in self.periods.items()}

    def held_s(self) -> float:
        """Since the first admission."""
        return (timezone.now() - min(map(_time, self.periods), default=timezone.now())).total_seconds()

    def stop(self) -> None:
        self._watch.stop()
        self._thread.join(10)

    def total_s(self) -> float:
        return sum(_time(end).timestamp() - _time(start).timestamp() for start, end in self.periods.items() if end)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.fixture
def reader(admin: Api, namespace_a: Namespace) -> Iterator[Reader]:
    found = Reader(admin, namespace_a.name, "train-1")
    yield found
    found.stop()


def is_admitted(name: str) -> bool:
    found = MirrorWorkload.objects.filter(owner=f"workloads.workload.{Workload.objects.get(name=name).pk}").first()
    conditions: list[dict[str, Any]] = found.record["conditions"] if found else []
    return any(one["type"] == "Admitted" and one["status"] == "True" for one in conditions)


@pytest.mark.parametrize("is_looked_at", [True, False])
def test_the_sum_equals_that_of_the_conditions(
    provisioned: Tenant,
    namespace_a: Namespace,
    job: LaunchSpec,
    by_alice: Actor,
    worker: Worker,
    reader: Reader,
    admin: Api,
    is_looked_at: bool,
) -> None:
    """`is_looked_at` False: the worker is dead from the first admission until the run is to be stopped."""
    # With an exit code of a pod that is told to stop, the Job could fail, and another run would follow.
    with ScriptedKubelet(admin).claim(namespace_a.name, is_silent=True):
        actions.launch("team-a", replace(job, units=2), by=by_alice)
        worker(lambda: is_admitted("train"))
        # Times are whole seconds: an admission of less may count nothing.
        wait_until(lambda: reader.held_s() > 2)
        if not is_looked_at:
            away = timezone.now() + timedelta(minutes=10)
            Workload.objects.filter(name="train").update(leased_until=away)
            AllocationInterval.objects.all().delete()
        urgent = replace(job, name="urgent", units=2, options=Options(priority="production"))
        actions.launch("team-a", urgent, by=by_alice)
        worker(lambda: is_admitted("urgent") and not is_admitted("train"))
        actions.stop("team-a", "urgent", by=by_alice)
        worker(lambda: is_admitted("train"))
        wait_until(lambda: len(reader.periods) == 2)
        Workload.objects.update(leased_until=None)
        assert is_looked_at or not AllocationInterval.objects.filter(run__workload__name="train").exists()
        actions.stop("team-a", "train", by=by_alice)
        worker(lambda: not Run.objects.filter(ended_at=None).exists())
    wait_until(lambda: None not in reader.periods.values())
    recording.correct_ends()

    rows = AllocationInterval.objects.filter(run__workload__name="train").order_by("starts_at")
    assert [(row.starts_at, row.ends_at) for row in rows] == [
        (_time(start), _time(end)) for start, end in sorted(reader.periods.items()) if end
    ]
    assert sum((row.ends_at - row.starts_at).total_seconds() for row in rows if row.ends_at) == reader.total_s() > 0
    # Kueue may call the Workload of a deleted Job finished before it deletes it.
    assert [row.end_reason for row in rows] in (["Preempted", "Finished"], ["Preempted", "Deleted"])
    assert all(row.flavor for row in rows)
    assert all(row.is_exact for row in rows)
