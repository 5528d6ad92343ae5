"""Random launches, stops, starts, deletes, ends and crashes, above the quota, while the portal's processes are killed.

The claim: when the cluster is quiet again, every object with the portal's label has a live row and every live row has
its objects; when everything was deleted, nothing is left and every unit is free. The seed alone determines the steps. A
short form runs in the suite, a long one in `run.py soak churn`.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from accounts.core.actor import Actor
from cluster.reads import queries as mirror
from devcluster.client.kube import ApiError
from devcluster.client.types import Json
from devcluster.kubelet.scripted import ScriptedKubelet, runs
from portal.core.errors import Refused
from tests.load.churn.audit import Accounts
from tests.load.churn.killed_processes import Processes
from tests.support.waiting import wait_until
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Workload

VERBS = ("launch", "launch", "stop", "start", "start", "delete", "crash", "finish")
VOLUMES = ("", "", "data", "more")
NEEDED = ("Job", "Pod", "Workload", "Node")
QUIET_WITHIN_S = 120.0


@dataclass
class Churn:
    """The members of one team with two units of one class. `told`: counts of events. `names`: not yet deleted."""

    wanted: dict[str, LaunchSpec]
    by: Actor
    accounts: Accounts
    processes: Processes
    seed: int
    told: Counter[str] = field(default_factory=Counter)
    names: list[str] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.kubelet = ScriptedKubelet(self.accounts.admin)

    # ---- user actions ----------------------------------------------------------------------------------------

    def step(self, *verbs: str) -> None:
        """Does one of `verbs`, which may be refused; then usually waits until no workload is due."""
        verb = self.dice.choice(verbs or VERBS) if self.names else "launch"
        name = self.dice.choice(self.names) if self.names else ""
        kind, volume, is_patient = self.dice.choice(("job", "notebook")), self.dice.choice(VOLUMES), self.dice.random()
        try:
            match verb:
                case "launch":
                    self.launch(kind, volume=volume)
                case "crash" | "finish":
                    self._end_pod(name, code=1 if verb == "crash" else 0)
                case _:
                    self.ask(verb, name)
            self.told[verb] += 1
        except Refused as no:
            self.told[no.refusal.code] += 1
        if is_patient < 0.6:
            self.wait(is_idle, what="no workload is due")

    def launch(self, kind: str, *, volume: str = "") -> str:
        self.number += 1
        name = f"w{self.number}"
        actions.launch(self._team, replace(self.wanted[kind], name=name, volume=volume), by=self.by)
        self.names.append(name)
        return name

    def ask(self, verb: str, name: str) -> None:
        {"stop": actions.stop, "start": actions.start, "delete": actions.delete}[verb](self._team, name, by=self.by)
        if verb == "delete":
            self.names.remove(name)

    def _end_pod(self, name: str, *, code: int) -> None:
        """Ends its process, if it has a pod."""
        for pod in self.pods(name):
            if pod["status"]["phase"] == "Running":
                try:
                    self.kubelet.exited(pod, code)
                    self.told[f"exit {code}"] += 1
                except ApiError as error:
                    if error.status not in (404, 409, 422):  # the pod ended or was deleted meanwhile
                        raise

    def preempt(self) -> None:
        """Two jobs hold every unit and run; then a notebook with a higher priority is launched."""
        names = [self.launch("job"), self.launch("job")]
        self.wait(lambda: all(self._is_running(name) for name in names), what="two jobs run")
        notebook = self.launch("notebook")
        self.wait(lambda: self._is_running(notebook), what="the notebook runs")
        self.wait(lambda: was_preempted().exists(), what="a run was preempted")
        self.wait(lambda: not self.accounts.differences() and is_idle(), what="its job waits again")

    # ---- faults of the portal ---------------------------------------------------------------------------------

    def kill_worker(self) -> None:
        """Kills the worker during a launch, before or after one of its writes."""
        during = self.processes.kill_worker_at_a_write(
            nth=self.dice.choice((1, 1, 2)),
            is_done=self.dice.random() < 0.5,
            during=lambda: self.step("launch", "stop"),
        )
        self.told["worker killed in a write" if during else "worker killed"] += 1

    def kill_watcher(self) -> None:
        self.processes.kill("watcher")
        self.told["watcher killed"] += 1

    # ---- reading state ---------------------------------------------------------------------------------------

    @property
    def _team(self) -> str:
        return self.accounts.namespace.tenant.slug

    def pods(self, name: str) -> list[Json]:
        """Of one workload."""
        owner = f"gpu-portal/workload={name}"
        return self.accounts.admin.list("v1/pods", namespace=self.accounts.namespace.name, labels=owner)

    def _is_running(self, name: str) -> bool:
        return any(pod["status"]["phase"] == "Running" for pod in self.pods(name))

    def wait(self, is_so: Callable[[], bool], *, what: str, within_s: float = QUIET_WITHIN_S) -> None:
        wait_until(is_so, within_s=within_s, every_s=0.1, what=what, story=self.story)

    def story(self) -> str:
        rows = Workload.objects.filter(deleted_at=None).values_list("name", "due_at", "leased_until", "error_text")
        alive = Run.objects.filter(ended_at=None).values_list("workload__name", "number", "stop_requested_at")
        lines = [*self.accounts.differences(), str(self.accounts.holders()), *map(str, rows), *map(str, alive)]
        return "\n".join([str(dict(self.told)), *lines, self.processes.story()])


def is_idle() -> bool:
    """No workload is due or leased."""
    return not Workload.objects.filter(Q(due_at__lte=Now()) | Q(leased_until__gt=Now())).exists()


def was_preempted() -> QuerySet[Run]:
    return Run.objects.filter(Q(preemptions__gt=0) | Q(reason="units_taken_back"))


def run(
    churn: Churn, *, steps: int, worker_every: int, watcher_every: int, look: Callable[[], object] = bool
) -> Counter[str]:
    """Runs `steps` steps, including kills, and `look` after each; then checks the accounts, deletes everything, and
    checks the accounts again.
    """
    namespace = churn.accounts.namespace
    with churn.kubelet.claim(namespace.name, script=runs):
        churn.wait(lambda: mirror.as_of(namespace.cluster_id, *NEEDED).is_current, what="the mirror is current")
        churn.preempt()
        for number in range(1, steps + 1):
            if number % watcher_every == 0:
                churn.kill_watcher()
            if number % worker_every == 0:
                churn.kill_worker()
            else:
                churn.step()
            look()
        _settle(churn)
        churn.told["preempted"] = was_preempted().count()
        churn.told["free after ms"] = round(1000 * _end_all(churn))
        _settle(churn)
    assert not churn.accounts.objects() & churn.accounts.allowed()
    assert not Run.objects.filter(Q(ended_at=None) | Q(outcome=Run.Outcome.LOST)).exists()
    assert not churn.processes.supervisor.ended(), churn.story()
    return churn.told


def _settle(churn: Churn) -> None:
    def is_quiet() -> bool:
        is_stopping = Run.objects.filter(ended_at=None).exclude(stop_requested_at=None).exists()
        return is_idle() and not is_stopping and not churn.accounts.differences()

    churn.wait(is_quiet, what="rows and objects agree")


def _end_all(churn: Churn) -> float:
    """Seconds from the end of the last pod until no unit counts as used."""
    for name in [*churn.names]:
        churn.ask("delete", name)
    churn.wait(lambda: not churn.accounts.holders().get("pods"), what="no pod is left")
    began = time.monotonic()
    churn.wait(lambda: not churn.accounts.holders(), what="units are free")
    return time.monotonic() - began
