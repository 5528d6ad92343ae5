"""A restore drill: 200 random changes, half of them after the backup, a lost database, and its restore, twice.

Takes about five minutes. Every Job in the cluster is accounted for each time, none is taken by another row, also while
rows get the primary keys and names of lost ones again, and both restores of the backup say the same.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError

from accounts.core.actor import Actor
from accounts.models import User
from cluster.client.kube import Kube
from cluster.models import AppliedObject
from portal.core import due
from portal.core.errors import Refused
from tenants.models import Namespace
from tests.desk.installation.drill import Drill, drill, manage
from tests.support.waiting import wait_until
from workloads.credentials import sealing
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run, TeamSecret, Workload
from workloads.runs.objects.comparison import JobState, compared_jobs, runs_without_job
from workloads.runs.restart import reconcile_and_restart, restart

__all__ = ["drill"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(1800)]
CHANGES = int(os.environ.get("SOAK_STEPS", "200"))
SEED = int(os.environ.get("SOAK_SEED", "2026"))
NAMES = [f"w{number}" for number in range(60)]
VERBS = ("launch", "launch", "launch", "launch", "start", "restart", "stop", "delete")
AGAIN = 20


@dataclass
class Team:
    """Changes of one member, some of which are refused, and a worker that follows them now and then."""

    job: LaunchSpec
    by: Actor
    kube: Kube
    dice: random.Random
    told: Counter[str] = field(default_factory=Counter)

    def change(self) -> None:
        verb, name = self.dice.choice(VERBS), self.dice.choice(NAMES)
        does: dict[str, Callable[[], object]] = {
            "launch": lambda: self.launch(name),
            "start": lambda: actions.start("team-a", name, by=self.by),
            "restart": lambda: restart("team-a", name, by=self.by),
            "stop": lambda: actions.stop("team-a", name, by=self.by),
            "delete": lambda: actions.delete("team-a", name, by=self.by),
        }
        try:
            does[verb]()
        except (Refused, IntegrityError):
            self.change()
            return
        self.told[verb] += 1
        if self.dice.random() < 0.7:
            self.work()

    def launch(self, name: str) -> Workload:
        return actions.launch("team-a", replace(self.job, name=name), by=self.by)

    def work(self) -> None:
        while (claimed := due.claim(Workload)) is not None:
            due.run_claimed(claimed, partial(reconcile_and_restart, kube=self.kube))


@pytest.fixture
def team(job: LaunchSpec, by_alice: Actor, kube_worker: Kube) -> Team:
    return Team(job, by_alice, kube_worker, random.Random(SEED))


def states(drill: Drill) -> dict[str, JobState]:
    """By uid."""
    return {uid: one.state for uid, one in drill.compared().items()}


def owned(drill: Drill) -> dict[str, str]:
    """Uid → identity of the run whose Job it is, as recorded. Asserts that the cluster says the same."""
    there = drill.jobs_in_cluster()
    sent = AppliedObject.objects.filter(kind="Job", result=AppliedObject.Result.APPLIED, uid__in=there)
    runs = {f"{run.workload.name}-{run.number}": run.spec["identity"]
            for run in Run.objects.select_related("workload").filter(workload__deleted_at=None)}  # fmt: skip
    found = {row.uid: runs[row.name] for row in sent}
    assert found == {uid: there[uid] for uid in found}
    return found


def test_restored_rows_own_their_jobs_and_no_others(
    drill: Drill, team: Team, namespace_a: Namespace, alice: User, services: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    TeamSecret.objects.create(namespace=namespace_a, created_by=alice, name="TOKEN", sealed=sealing.seal("a value"))
    for _ in range(CHANGES // 2):
        team.change()
    drill.back_up()
    for _ in range(CHANGES // 2):
        team.change()
    highest = Workload.objects.latest("pk").pk

    drill.lose_and_restore()
    drill.watch()
    first, without = states(drill), runs_without_job(drill.cluster)
    counts = Counter(first.values())
    assert counts[JobState.RECORDED]
    assert counts[JobState.ORPHAN]
    assert counts[JobState.UNRECORDED] + counts[JobState.DUPLICATE]
    assert without

    # Nobody has moved the sequences: rows get the keys and the names of lost ones.
    orphans = [one.name.rpartition("-")[0] for one in compared_jobs(drill.cluster) if one.state is JobState.ORPHAN]
    reused = 0
    for name in [*orphans, *NAMES][:AGAIN]:
        with suppress(Refused, IntegrityError):
            reused += team.launch(name).pk <= highest
    team.work()
    assert reused
    assert owned(drill)
    drill.compared()

    drill.lose_and_restore()
    drill.watch()
    second = states(drill)
    both = first.keys() & second.keys()
    assert len(both) > len(first) // 2
    assert {uid: first[uid] for uid in both} == {uid: second[uid] for uid in both}
    assert sealing.unseal(bytes(TeamSecret.objects.get().sealed)) == "a value"

    manage("compare", "--after-restore", code=1)
    unowned = [one for one in compared_jobs(drill.cluster) if one.state is not JobState.RECORDED]
    decided = [word for one in unowned for word in ("--delete-job", f"{one.namespace}/{one.name}")]
    manage("compare", *decided, PORTAL_KUBECONFIG=services["kubeconfigs"]["worker"])

    def is_quiet() -> bool:
        team.work()
        left = set(states(drill).values())
        return left == {JobState.RECORDED} and not runs_without_job(drill.cluster)

    wait_until(is_quiet, within_s=300, every_s=1, story=lambda: manage("compare", code=1))
    assert team.launch("last").pk > max(int(one.owner.rpartition(".")[2]) for one in unowned)
    team.work()
    found = owned(drill)
    with capsys.disabled():
        print(f"\nchanges {dict(team.told)}, seed {SEED}")
        told = {state.value: count for state, count in counts.items()}
        print(f"after the restore: {told}, {len(without)} runs without a Job")
        print(f"keys used again: {reused}; Jobs owned at the end: {len(found)}")
