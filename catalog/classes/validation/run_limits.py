"""Limits of a class: run time, idle time of notebooks and of GPUs, units of production priority, retention of logs, how
long a fall of its capacity is delayed, and the nodes that an autoscaler adds. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from portal.core.errors import Refusal
from portal.ui.text import plural

# A year, and a week: a notebook without activity for a week is idle by any definition.
RUN_HOURS_MOST = 8760
IDLE_MINUTES_LEAST, IDLE_MINUTES_MOST = 5, 10080
# An hour without activity is longer than a pause for lunch takes a person, and than an epoch takes to be evaluated.
IDLE_MINUTES = 60
LOG_DAYS, LOG_DAYS_MOST = 14, 365
# A device plugin needs a minute to restart, a node a few.
DAMPING_MINUTES, DAMPING_MINUTES_MOST = 5, 1440
NODE_MINUTES, NODE_MINUTES_MOST = 10, 1440


def run_limit_problems(values: Mapping[str, Any]) -> Iterator[Refusal]:
    hours, minutes = values["run_hours_limit"], values["idle_stop_minutes"]
    if hours is not None and not 1 <= hours <= RUN_HOURS_MOST:
        text = f"Enter a time limit of 1 to {RUN_HOURS_MOST} hours, not {hours}; leave it out for no time limit."
        yield Refusal("run_hours", text, "run_hours_limit")
    if minutes is not None and not IDLE_MINUTES_LEAST <= minutes <= IDLE_MINUTES_MOST:
        text = (
            f"Enter {IDLE_MINUTES_LEAST} to {IDLE_MINUTES_MOST} minutes, not {minutes}; "
            "leave it out to never stop idle notebooks."
        )
        yield Refusal("idle_stop", text, "idle_stop_minutes")
    if not IDLE_MINUTES_LEAST <= (idle := values["idle_minutes"]) <= IDLE_MINUTES_MOST:
        text = f"Enter {IDLE_MINUTES_LEAST} to {IDLE_MINUTES_MOST} minutes, not {idle}."
        yield Refusal("idle_minutes", text, "idle_minutes")


def log_retention_problems(values: Mapping[str, Any]) -> Iterator[Refusal]:
    if not 0 <= (days := values["log_retention_days"]) <= LOG_DAYS_MOST:
        text = f"Enter 0 to {LOG_DAYS_MOST} days, not {days}; 0 means that logs are not kept."
        yield Refusal("log_retention", text, "log_retention_days")


def damping_problems(values: Mapping[str, Any]) -> Iterator[Refusal]:
    if not 0 <= (minutes := values["damping_minutes"]) <= DAMPING_MINUTES_MOST:
        text = f"Enter 0 to {DAMPING_MINUTES_MOST} minutes, not {minutes}; 0 means that quota falls at once."
        yield Refusal("damping", text, "damping_minutes")


def autoscaling_problems(values: Mapping[str, Any]) -> Iterator[Refusal]:
    if values["max_units"] == 0:
        text = "Enter at least 1 unit, or leave it empty: then no nodes are added."
        yield Refusal("max_units", text, "max_units")
    if not 1 <= (minutes := values["node_minutes"]) <= NODE_MINUTES_MOST:
        text = f"Enter 1 to {NODE_MINUTES_MOST} minutes, not {minutes}."
        yield Refusal("node_minutes", text, "node_minutes")


def run_limit_facts(
    run_hours_limit: int | None, idle_stop_minutes: int | None, production_limit: int | None
) -> Iterator[tuple[str, str]]:
    """Returns (label, value) pairs for the class's page, without limits that are not set."""
    if run_hours_limit is not None:
        yield "Time limit", f"{run_hours_limit} h from the start of a run"
    if idle_stop_minutes is not None:
        yield "Idle notebooks", f"stopped after {idle_stop_minutes} min without activity"
    if production_limit is not None:
        yield "Production workloads", f"at most {production_limit} units per team" if production_limit else "none"


def idle_fact(action: str, minutes: int) -> tuple[str, str]:
    """Returns (label, value) for the class's page: what happens to a run whose GPUs are idle."""
    after = f"after {plural(minutes, 'minute')} without GPU activity"
    values = {"tell": f"users are notified {after}", "stop": f"users are warned {after}, then the run is stopped"}
    return "Idle GPUs", values.get(action, "no action")


def log_retention_fact(days: int) -> tuple[str, str]:
    """Returns (label, value) for the class's page."""
    return "Log of an ended run", f"kept for {plural(days, 'day')}" if days else "not kept"
