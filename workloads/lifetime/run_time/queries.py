"""The time limit of a run, from its row. Few queries, no sentences."""

from __future__ import annotations

from catalog.models import GpuClass
from workloads.core.queries import locked_runs
from workloads.lifetime.run_time.policy import TimeFacts
from workloads.models import Run


def total_minutes(run: Run) -> int | None:
    """Minutes from the start; None: no time limit."""
    minutes = run.spec.get("run_minutes")
    return None if minutes is None else minutes + run.extended_minutes


def time_facts(run: Run, gpu_class: GpuClass) -> TimeFacts:
    """`gpu_class`: the run's own class; the workload may be declared with another one now."""
    return TimeFacts(gpu_class.name, total_minutes(run), run.ends_at, gpu_class.run_hours_limit)


def locked_run(run_id: int) -> Run:
    return locked_runs().select_related("workload__tenant", "workload__namespace", "requested_by").get(pk=run_id)
