"""At random moments the figures of jobs that start, stop and change equal those of raw samples: whole GPUs, MIG slices,
time-sliced GPUs and MPS.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable

from tests.load.usage.random_jobs import RandomJobs
from tests.load.usage.running_demo import RunningDemo
from tests.support.waiting import wait_until

# The mixed hardware, without other workloads.
SCENARIO = "quiet"
MOMENTS = int(os.environ.get("SOAK_MOMENTS", "50"))
SEED = int(os.environ.get("SOAK_SEED", "2026"))


def test_figures_of_runs_equal_the_queries_at_random_moments(demo: RunningDemo, say: Callable[[str], None]) -> None:
    dice = random.Random(SEED)
    jobs = RandomJobs(demo, dice)
    jobs.begin()
    for _ in range(MOMENTS):
        for _ in range(dice.randint(1, 2)):
            jobs.step()
        _pass(dice.uniform(2, 14))
        jobs.look()
    say(f"{MOMENTS} moments, seed {SEED}: {dict(jobs.told)}")
    say(f"minutes of runs compared: { {kind: len(those) for kind, those in jobs.compared.items()} }")
    say(f"largest difference in points: { {kind: round(one, 6) for kind, one in jobs.differences.items()} }")
    assert min(map(len, jobs.compared.values())) >= MOMENTS / 10, jobs.compared


def _pass(seconds: float) -> None:
    ends = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > ends, within_s=seconds + 30)
