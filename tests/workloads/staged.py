"""Situations that are staged on a cluster are told as they were written down."""

from __future__ import annotations

from accounts.actor import Actor
from tests.workloads.conftest import Worker
from tests.workloads.situations import Situation, as_written
from workloads import queries
from workloads.models import Workload
from workloads.next_steps_shown import Helps, helps
from workloads.queries.helping import advices


def until_as_written(worker: Worker, by: Actor, written: dict[str, Situation]) -> dict[str, Helps]:
    """By name of the workload: until each is told so, at one moment or another; the help of that moment."""
    found: dict[str, Helps] = {}

    def step() -> bool:
        namespace, team = queries.team(by, "team-a")
        left = Workload.objects.filter(name__in=written.keys() - found.keys())
        rows = {row.workload.name: row for row in queries.rows(queries.with_names(left))}
        for name, advice in advices(by, namespace, team, rows.values()).items():
            status, help_ = rows[name].status, helps(name, advice, "team-a")
            told = (str(status.phase), status.reason, help_.steps[0].verb)
            if told == (written[name].phase, written[name].reason, written[name].step):
                as_written(written[name], status, help_)
                found[name] = help_
        return len(found) == len(written)

    worker(step, within_s=120)
    return found
