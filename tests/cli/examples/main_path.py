"""Runs with the generated client, not in this project's environment: see test_generated_client.py.

python main_path.py ADDRESS CLASS     the token is in GPU_TOKEN; what came back is printed as JSON
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import httpx
from client.api.classes import classes_list  # type: ignore[import-not-found]
from client.api.workloads import (  # type: ignore[import-not-found]
    workload_runs_get,
    workloads_declare,
    workloads_delete,
    workloads_get,
    workloads_list,
    workloads_log,
    workloads_start,
)
from client.client import AuthenticatedClient  # type: ignore[import-not-found]
from client.models import (  # type: ignore[import-not-found]
    OneRun,
    Refusal,
    Start,
    Wanted,
    Workload,
    WorkloadKind,
    WorkloadRunsGetUntil,
    WorkloadsLogFollow,
)

from tests.support.waiting import wait_until

NAME, TEAM = "made-by-it", "team-a"


def main(address: str, gpu_class: str) -> dict[str, Any]:
    said: dict[str, Any] = {}
    with AuthenticatedClient(
        address, token=os.environ["GPU_TOKEN"], raise_on_unexpected_status=True, timeout=httpx.Timeout(90)
    ) as client:
        page = classes_list.sync(client=client)
        said["classes"] = [one.slug for one in page.items]
        wanted = Wanted(gpu_class=gpu_class, image="python", kind=WorkloadKind.JOB, command=["python", "-V"])
        for again in ("declared", "declared again"):
            answer = workloads_declare.sync_detailed(NAME, client=client, team=TEAM, body=wanted)
            said[again] = [answer.status_code, type(answer.parsed).__name__, answer.parsed.needs_run]
        refused = workloads_declare.sync(NAME, client=client, team=TEAM, body=Wanted(gpu_class="none", image="python"))
        said["refused"] = [isinstance(refused, Refusal), refused.code.value, refused.field]
        started = workloads_start.sync_detailed(
            NAME, client=client, team=TEAM, body=Start(group="main"), idempotency_key="once"
        )
        again = workloads_start.sync_detailed(
            NAME, client=client, team=TEAM, body=Start(group="main"), idempotency_key="once"
        )
        said["started"] = [started.status_code, started.parsed.run.number, again.content == started.content]
        number, until = started.parsed.run.number, WorkloadRunsGetUntil.FINISHED
        for _ in range(8):
            run = workload_runs_get.sync(NAME, number, client=client, team=TEAM, until=until, wait=60)
            if run.ended_at is not None:
                break
        said["run"] = [isinstance(run, OneRun), run.group, run.outcome, run.exit_code, run.status.phase]
        said["in order"] = run.requested_at <= run.admitted_at <= run.started_at <= run.ended_at
        log = workloads_log.sync_detailed(TEAM, NAME, client=client, follow=WorkloadsLogFollow.VALUE_0)
        said["log"] = [log.status_code, bool(log.content)]
        said["listed"] = [
            one.name for one in workloads_list.sync(client=client, team=TEAM, created_by="bob@example.org").items
        ]
        deleted = workloads_delete.sync_detailed(NAME, client=client, team=TEAM)
        said["deleted"] = [deleted.status_code, isinstance(deleted.parsed, Workload)]
        wait_until(lambda: isinstance(workloads_get.sync(NAME, client=client, team=TEAM), Refusal), what="it is gone")
        said["gone"] = workloads_get.sync(NAME, client=client, team=TEAM).code.value
    return said


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:])))
