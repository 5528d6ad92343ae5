"""Moves the start of a scenario's runs into the past, everywhere: in the portal's rows, in Kueue's conditions and in
Prometheus, which gets the samples of these hours. A pod keeps its date of creation, which nobody can change.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from urllib.request import urlopen

from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.controlplane import programs
from devcluster.demo.scenarios import Scenario
from devcluster.monitoring import prometheus
from devcluster.monitoring.assignment import Held
from devcluster.monitoring.past import past_lines
from devcluster.processes.console import UserError
from devcluster.services.portal import Portal
from devcluster.services.stack import Stack

WORKLOADS = "kueue.x-k8s.io/v1beta2/workloads"
SEED_WITHIN_S = 120.0


def create_past(stack: Stack, portal: Portal, scenario: Scenario) -> None:
    """Once: at later starts the past is real. Watcher and Prometheus are stopped meanwhile."""
    done = stack.state / "past-created"
    if done.exists():
        return
    hours = timedelta(hours=scenario.past_hours)
    supervisor = stack.supervisor
    assigned = _assigned(stack)
    stopped = [supervisor.running[name].command for name in ("watcher", "prometheus")]
    for command in stopped:
        supervisor.stop(command.name)
    seed = supervisor.start(portal.seed("past", scenario.name)).command
    _fill_prometheus(stack, assigned, hours)
    seeded = supervisor.finish(seed.name, within_s=SEED_WITHIN_S)
    if seeded.process.returncode:
        raise UserError(f"seed-past failed. Its last lines:\n{seeded.last_lines()}", f"Full log: {seeded.log}.")
    move_admissions(stack.admin, hours)
    for command in stopped:
        supervisor.start(command)
    supervisor.until_ready(*(command.name for command in stopped))
    done.touch()


def move_admissions(api: Api, by: timedelta) -> None:
    for workload in api.list(WORKLOADS):
        meta = workload["metadata"]
        if moved := moved_conditions(workload.get("status", {}).get("conditions", ()), by, now=time.time()):
            api.patch_status(WORKLOADS, meta["name"], {"conditions": moved}, namespace=meta["namespace"])


def moved_conditions(conditions: Sequence[Json], by: timedelta, *, now: float) -> list[Json]:
    """The conditions of an admitted Workload with earlier times; [] if it is not admitted, or was so before."""
    times = {one["type"]: datetime.fromisoformat(one["lastTransitionTime"]) for one in conditions}
    if "Admitted" not in times or times["Admitted"].timestamp() <= now - by.total_seconds():
        return []
    return [
        one | {"lastTransitionTime": (times[one["type"]] - by).strftime("%Y-%m-%dT%H:%M:%SZ")} for one in conditions
    ]


def _assigned(stack: Stack) -> dict[str, Held]:
    """By node; an exporter assigns devices when it is asked."""
    for node in stack.admin.list("v1/nodes"):
        with urlopen(f"http://127.0.0.1:{stack.ports['exporters']}/metrics/{node['metadata']['name']}", timeout=10):
            pass
    found: dict[str, Held] = json.loads(prometheus.assigned_of(stack.prometheus_dir).read_text())
    return found


def _fill_prometheus(stack: Stack, assigned: dict[str, Held], by: timedelta) -> None:
    """With the metrics of the pods that hold GPUs now."""
    nodes, pods = stack.admin.list("v1/nodes"), stack.admin.list("v1/pods")
    created = [datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) for pod in pods]
    text = stack.prometheus_dir / "past.txt"
    with text.open("w") as file:
        lines = past_lines(nodes, pods, assigned, starts_at=(min(created) - by).timestamp(), ends_at=time.time())
        file.writelines(f"{line}\n" for line in lines)
    found = programs.find_or_build(stack.supervisor, programs.MONITORING)
    prometheus.import_past(stack.supervisor, found, stack.prometheus_dir, text)
    text.unlink()
