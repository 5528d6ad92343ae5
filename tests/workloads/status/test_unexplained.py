"""Texts without an explanation are counted once for each text of a run; explained texts are not counted."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Namespace, Tenant
from tests.support.rows import mirrored, running
from tests.support.rows.waiting_runs import NEEDED, mirror_wait
from tests.workloads.cases.problem_status import told
from tests.workloads.cases.problems import PROBLEMS
from workloads.core import workload_sql
from workloads.models import Workload
from workloads.status import queries
from workloads.status.explain import unexplained

FALLBACKS = {
    "key missing": "container_config",
    "clone failed": "clone_failed",
}


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_what_has_words_of_its_own_is_no_unheard_text(problem: object) -> None:
    found = told(problem)  # type: ignore[arg-type]
    if found.explained is not None:
        assert unexplained.is_unexplained(found.explained) == (found.reason in FALLBACKS.values())


def counted() -> float:
    labels = {"said_by": "Kueue", "reason": "queued"}
    return REGISTRY.get_sample_value("portal_unknown_explanations_total", labels) or 0


@pytest.mark.django_db
def test_a_text_is_counted_once_however_often_somebody_looks(
    team_a: Tenant, namespace_a: Namespace, cluster: Cluster, a100: GpuClass, alice: User
) -> None:
    mirrored.hardware_seen(cluster)
    before = counted()
    known = running.workload(namespace_a, a100, name="known", by=alice)
    mirror_wait(known, NEEDED)
    for name in ("one", "two"):
        mirror_wait(running.workload(namespace_a, a100, name=name, by=alice), "words that nobody has heard")
    for _look in range(3):
        queries.workload_rows(workload_sql.with_related(Workload.objects.all()))
    assert counted() - before == 2
