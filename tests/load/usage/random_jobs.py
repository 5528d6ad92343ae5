"""Jobs of one team on classes of each kind, which start, stop and change what their GPUs do at random, by the API.

At any moment the portal's figure of one of them is compared with the test's own.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from devcluster.monitoring.profiles import ANNOTATION, PROFILES, VARIABLE
from tests.load.usage.own_figures import ENGINE, MINUTE_S, UTILISATION, is_near, pods_of
from tests.load.usage.running_demo import Json, RunningDemo
from tests.support.waiting import wait_until

WHO, TEAM = "Alice", "team-a"
PRODUCT = "NVIDIA-A100-SXM4-80GB"
# Kind → what its class is, and how many of its jobs there are at most. More jobs than cards share a card.
KINDS: Mapping[str, tuple[Mapping[str, str], int]] = {
    "whole": ({"resource": "nvidia.com/gpu", "partition": "none", "sharing": "none"}, 3),
    "MIG": ({"resource": "nvidia.com/mig-1g.10gb", "sharing": "none"}, 3),
    "time-sliced": ({"resource": "nvidia.com/gpu.shared", "partition": "none", "sharing": "time-slicing"}, 6),
    "MPS": ({"sharing": "mps", "partition": "none"}, 6),
}
SHARED = ("time-sliced", "MPS")
# What the portal calls the figure.
MEASURES = {"whole": "utilisation", "MIG": "engine", "time-sliced": "shared", "MPS": "shared"}


@dataclass
class LiveJob:
    name: str
    kind: str
    units: int
    admitted_at: float | None = None

    @property
    def job(self) -> str:
        return f"{self.name}-1"


@dataclass
class RandomJobs:
    """`told`: what happened and what was compared. `differences`: in points, by kind."""

    demo: RunningDemo
    dice: random.Random
    classes: Mapping[str, Json] = field(default_factory=dict)
    live: list[LiveJob] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)
    compared: dict[str, set[tuple[str, int]]] = field(default_factory=lambda: {kind: set() for kind in KINDS})
    differences: dict[str, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 0.0))

    def begin(self) -> None:
        """Gets quota of a class of each kind, and starts a job of each, until all are measured."""
        offered = self.demo.get(WHO, "classes?limit=200")["items"]
        self.classes = {
            kind: next(one for one in offered if one["product"] == PRODUCT and wanted.items() <= one.items())
            for kind, (wanted, _) in KINDS.items()
        }
        ends_at = (datetime.now(UTC) + timedelta(days=7)).isoformat()
        lines = [
            {"gpu_class": self.classes[kind]["slug"], "units": 2 * most, "ends_at": ends_at}
            for kind, (_, most) in KINDS.items()
        ]
        why = {"team": TEAM, "justification": "Jobs on classes of each kind.", "lines": lines}
        filed = self.demo.call(WHO, "POST", "requests", why)
        decision = {"lines": [{"id": line["id"], "approve": True} for line in filed["lines"]]}
        over = {"over_promise": True, "over_promise_reason": "A test."}
        self.demo.call("Dana", "POST", f"requests/{filed['id']}/decide", decision | over)
        wait_until(lambda: self.demo.get(WHO, f"teams/{TEAM}")["namespace"]["is_settled"], within_s=120)
        for kind in KINDS:
            self._start(kind)
        wait_until(
            lambda: all(self.demo.activity(WHO, TEAM, one.name)["now"] for one in self.live),
            within_s=300, every_s=2, what="the first jobs are measured", story=self.demo.story,
        )  # fmt: skip

    def step(self) -> None:
        """One of: a job starts, ends, or its GPUs do something else."""
        kind = self.dice.choice(list(KINDS))
        those = [one for one in self.live if one.kind == kind]
        actions = ["start"] * (len(those) < KINDS[kind][1]) * 2 + ["change"] * 2 + ["stop"] * (len(those) > 1)
        action = self.dice.choice(actions)
        if action == "start":
            self._start(kind)
        elif action == "stop":
            self._stop(self.dice.choice(those))
        else:
            self._change(self.dice.choice(those))
        self.told[action] += 1

    def look(self) -> None:
        for one in self.live:
            self._compare(one)
        self.told["moments"] += 1

    def _start(self, kind: str) -> None:
        one = self.classes[kind]
        name = f"{kind.lower()}-{sum(self.told.values())}-{self.dice.randrange(1000)}"
        units = self.dice.randint(1, min(2, one["units_per_workload"]))
        body: Json = {"name": name, "kind": "job", "gpu_class": one["slug"], "units": units, "image": "PyTorch"}
        body |= {"command": ["python", "train.py"]}
        body |= {"options": {"checkpoints": True, "env": {VARIABLE: self.dice.choice(PROFILES)}}}
        if one["terms"]:
            body["accept_terms"] = one["terms"]["version"]
        self.demo.call(WHO, "POST", f"workloads?team={TEAM}", body)
        self.live.append(LiveJob(name, kind, units))

    def _stop(self, one: LiveJob) -> None:
        self.live.remove(one)
        self.demo.call(WHO, "POST", f"workloads/{one.name}/stop?team={TEAM}")

    def _change(self, one: LiveJob) -> None:
        labels = f"job-name={one.job}"
        for pod in self.demo.admin.list("v1/pods", namespace=TEAM, labels=labels):
            told = {"metadata": {"annotations": {ANNOTATION: self.dice.choice(PROFILES)}}}
            self.demo.admin.patch("v1/pods", pod["metadata"]["name"], told, namespace=TEAM)

    def _compare(self, one: LiveJob) -> None:
        """Also that what one of the two has not measured, the other has not."""
        told = self.demo.activity(WHO, TEAM, one.name)
        if one.admitted_at is None:
            one.admitted_at = self.demo.admitted_at(TEAM, one.job)
        if told["read_until"] is None or one.admitted_at is None:
            self.told["too early"] += 1
            return
        until = int(datetime.fromisoformat(told["read_until"]).timestamp())
        own = self.demo.prometheus.minutes(
            ENGINE if one.kind == "MIG" else UTILISATION,
            pods_of(TEAM, one.job),
            devices=1 if one.kind in SHARED else one.units,
            since=one.admitted_at,
            until=until,
        )
        context = (one, told, own)
        assert (told["now"] is None) == (until not in own.by_end), context
        assert told["minutes"] == len(own.by_end), context
        if told["now"] is None or own.mean is None:
            self.told[f"not measured {one.kind}"] += 1
            return
        assert told["measure"] == MEASURES[one.kind]
        for ours, theirs in ((own.by_end[until], told["now"]["activity"]), (own.mean, told["mean"])):
            assert is_near(theirs, ours), context
            self.differences[one.kind] = max(self.differences[one.kind], abs(ours - theirs))
        self.compared[one.kind].add((one.name, until // MINUTE_S))
        self.told[f"compared {one.kind}"] += 1
