"""Checks that situations staged on a cluster are reported as they were written."""

from __future__ import annotations

from accounts.core.actor import Actor
from tests.support.cluster.worker import Worker
from tests.workloads.cases.situations import Situation, as_written
from workloads.advice.queries import advice_by_workload
from workloads.advice.shown import AdviceView, advice_view
from workloads.core import queries, workload_sql
from workloads.models import Workload
from workloads.status import queries as status_queries


def until_as_written(
    worker: Worker, by: Actor, written: dict[str, Situation], *, within_s: float = 120
) -> dict[str, AdviceView]:
    """Waits until each named workload has been reported as written, not necessarily all at once. Returns the advice of
    that moment by name.
    """
    found: dict[str, AdviceView] = {}

    def step() -> bool:
        namespace, team = queries.team(by, "team-a")
        left = Workload.objects.filter(name__in=written.keys() - found.keys())
        rows = {row.workload.name: row for row in status_queries.workload_rows(workload_sql.with_related(left))}
        for name, advice in advice_by_workload(by, namespace, team, rows.values()).items():
            status, help_ = rows[name].status, advice_view(name, advice, "team-a")
            told = (str(status.phase), status.reason, help_.steps[0].verb)
            if told == (written[name].phase, written[name].reason, written[name].step):
                as_written(written[name], status, help_)
                found[name] = help_
        return len(found) == len(written)

    worker(step, within_s=within_s)
    return found
