"""The worker refuses to start where the cluster would let it write outside of the portal's namespaces."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from accounts.core.actor import Actor
from accounts.models import User
from cluster import tasks
from cluster.client import fence
from cluster.client.errors import ClusterUnavailable
from cluster.client.kube import Kube, connect
from cluster.models import Cluster
from cluster.observe_only.actions import set_observe_only
from tests.plugin import process_environment

ROOT = Path(__file__).parents[3]


def test_the_fence_is_seen_where_it_stands(kube_worker: Kube) -> None:
    fence.check_fence(kube_worker)


def test_an_identity_that_no_fence_holds_is_not_let_through(services: dict[str, Any]) -> None:
    with pytest.raises(fence.FenceMissing, match="allows this worker to write a Secret into kube-system"):
        fence.check_fence(Kube(services["kubeconfigs"]["admin"]))


def test_a_refusal_by_missing_rights_is_not_taken_for_the_fence(kube_watcher: Kube) -> None:
    with pytest.raises(fence.FenceMissing, match="not by the policy of deploy/base"):
        fence.check_fence(kube_watcher)


@pytest.mark.django_db(transaction=True)
def test_the_worker_ends_with_the_reason_and_takes_no_task(services: dict[str, Any]) -> None:
    """The rights are not confined by any policy; here they are the administrator's."""
    command = [sys.executable, "-m", "celery", "-A", "portal", "worker", "-P", "prefork", "-Q", "people,background"]
    env = {**process_environment(), "PORTAL_KUBECONFIG": services["kubeconfigs"]["admin"]}
    done = subprocess.run(
        [*command, "-c", "1", "--without-mingle"], cwd=ROOT, env=env, capture_output=True, text=True, timeout=60
    )
    said = done.stdout + done.stderr
    assert "its admission policy is missing" in said
    assert " ready." not in said


@pytest.mark.django_db
def test_the_worker_waits_for_an_api_server_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [ClusterUnavailable("connection refused"), ClusterUnavailable("timed out"), None]
    asked = []

    def answer(kube: Kube) -> None:
        asked.append(kube)
        if failure := answers[len(asked) - 1]:
            raise failure

    monkeypatch.setattr(fence, "check_fence", answer)
    monkeypatch.setattr(tasks, "Kube", lambda _kubeconfig, **_checks: object())
    monkeypatch.setattr(tasks, "FENCE_RETRY_S", 0)

    tasks.refuse_without_fence()

    assert len(asked) == len(answers)


@pytest.mark.django_db
def test_a_worker_that_only_observes_checks_the_fence_before_its_first_write(
    services: dict[str, Any], settings: Any, cluster: Cluster, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rights are the administrator's, which no fence confines: so nothing is written, also when it may write."""
    settings.PORTAL_KUBECONFIG = services["kubeconfigs"]["admin"]
    monkeypatch.setattr(fence, "_fence", fence.Fence())
    by = Actor(olga, "page")
    set_observe_only(cluster, wanted=True, by=by)
    tasks.refuse_without_fence()
    set_observe_only(cluster, wanted=False, by=by)
    kube = connect.__wrapped__()
    with pytest.raises(ClusterUnavailable, match="its admission policy is missing"):
        kube.delete("Job", name="nothing", namespace="gpu-portal")

    # The worker's own rights are confined: the next write passes, and the fence is not asked again.
    asked = []
    monkeypatch.setattr(fence, "check_fence", asked.append)
    kube.delete("Job", name="nothing", namespace="gpu-portal")
    kube.delete("Job", name="nothing", namespace="gpu-portal")
    assert len(asked) == 1


def test_a_worker_that_runs_through_a_move_checks_the_fence_of_the_other_cluster(
    monkeypatch: pytest.MonkeyPatch, kube_worker: Kube
) -> None:
    monkeypatch.setattr(fence, "_fence", fence.Fence())
    asked: list[Any] = []
    monkeypatch.setattr(fence, "check_fence", asked.append)
    found = []
    # No worker: nothing confines these rights.
    for uid in ("first", "second"):
        fence.check_postponed_fence(lambda uid=uid: uid, lambda: kube_worker)
    fence.record_fence("first")
    for uid in ("first", "first", "second", "second", "first"):
        fence.check_postponed_fence(lambda uid=uid: uid, lambda: kube_worker)
        found.append(len(asked))
    assert found == [0, 0, 1, 1, 2]


def test_a_fence_that_was_found_while_the_cluster_changed_is_looked_for_again(
    monkeypatch: pytest.MonkeyPatch, kube_worker: Kube
) -> None:
    monkeypatch.setattr(fence, "_fence", fence.Fence())
    asked: list[Any] = []
    monkeypatch.setattr(fence, "check_fence", asked.append)
    fence.postpone_fence()
    reached = iter(["first", "second", "second", "second", "second"])
    for _ in range(3):
        fence.check_postponed_fence(lambda: next(reached), lambda: kube_worker)
    assert len(asked) == 2
