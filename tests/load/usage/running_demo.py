"""A demo in processes of its own, as `run.py demo` starts it, with data that nobody else uses.

People act by HTTP: with a token, and on pages. An independent client reads the cluster with all rights.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from devcluster.client.kube import Api
from devcluster.demo import environment, scenarios
from devcluster.demo.http_client import BrowserSession, Page
from devcluster.processes.supervisor import Command
from devcluster.services.portal import Portal
from devcluster.services.stack import Options, Stack
from tests.load.usage.own_figures import Prometheus

Json = dict[str, Any]
WORKLOADS = "kueue.x-k8s.io/v1beta2/workloads"


@dataclass
class RunningDemo:
    stack: Stack
    portal: Portal
    accounts: dict[str, Json]
    ready_at: float = field(default_factory=time.monotonic)
    _dead: dict[str, Command] = field(default_factory=dict)

    @cached_property
    def admin(self) -> Api:
        return self.stack.admin

    @cached_property
    def prometheus(self) -> Prometheus:
        return Prometheus(self.stack.services["prometheus_url"])

    @property
    def database_url(self) -> str:
        return str(self.portal.services["database_url"])

    # ---- people ------------------------------------------------------------------------------------------------------

    def get(self, who: str, path: str) -> Any:
        return self.call(who, "GET", path)

    def call(self, who: str, method: str, path: str, body: Any = None) -> Any:
        """With the token of a person of the cast."""
        with _session(self.portal.url, token=self.accounts[who]["token"]) as session:
            answer = session.api(method, f"/api/v1/{path}", body)
        assert answer.status in (200, 201, 202), (who, method, path, answer.status, answer.text[:500])
        return answer.json()

    def idle_holders(self) -> dict[str, Json]:
        """What staff is told, by the name of the workload."""
        return {one["workload"]: one for one in self.get("Olga", "idle-holders?limit=200")["items"]}

    def activity(self, who: str, team: str, name: str) -> Json:
        found: Json = self.get(who, f"workloads/{name}/activity?team={team}")
        return found

    def page(self, who: str, path: str) -> Page:
        """After a sign-in with the password."""
        account = self.accounts[who]
        with _session(self.portal.url) as session:
            signing_in = session.get("/login")
            form = signing_in.form(having="password")
            named = "username" if "username" in form.fields else "email"
            session.submit(signing_in, form, **{named: account["email"], "password": account["password"]})
            found = session.get(path)
        assert found.status == 200, (who, path, found.status, found.words()[:300])
        return found

    # ---- the cluster and the processes -------------------------------------------------------------------------------

    def pods(self, node: str = "") -> list[Json]:
        """Of jobs, with their node."""
        found = self.admin.list("v1/pods", labels="gpu-portal/owner")
        return [pod for pod in found if not node or pod["spec"].get("nodeName") == node]

    def job(self, namespace: str, name: str) -> Json | None:
        return self.admin.find("batch/v1/jobs", name, namespace=namespace)

    def admitted_at(self, namespace: str, job: str) -> float | None:
        """Since when Kueue has counted the units of a Job, in Unix seconds; None: it does not."""
        for one in self.admin.list(WORKLOADS, namespace=namespace):
            if [owner["name"] for owner in one["metadata"].get("ownerReferences", ())] == [job]:
                conditions = {found["type"]: found for found in one.get("status", {}).get("conditions", ())}
                admitted = conditions.get("Admitted", {"status": "False"})
                if admitted["status"] == "True":
                    return datetime.fromisoformat(admitted["lastTransitionTime"]).timestamp()
        return None

    def held_gpus(self) -> dict[str, Json]:
        """Namespace and Job of each pod that holds a GPU, by the name of its workload."""
        found = {}
        for pod in self.pods():
            job = pod["metadata"]["labels"]["job-name"]
            found[job.rpartition("-")[0]] = {"namespace": pod["metadata"]["namespace"], "job": job}
        return found

    def annotate_node(self, node: str, **annotations: str | None) -> None:
        told = {f"devcluster/{name.replace('_', '-')}": text for name, text in annotations.items()}
        self.admin.patch("v1/nodes", node, {"metadata": {"annotations": told}})

    def kill(self, name: str) -> None:
        """SIGKILL for a process of the portal and its children; `revive` starts it again."""
        running = self.stack.supervisor.running[name]
        os.killpg(running.pid, signal.SIGKILL)
        running.process.wait(10)
        self._dead[name] = running.command
        self.stack.supervisor.stop(name)

    def revive(self, name: str) -> None:
        self.stack.supervisor.start(self._dead.pop(name))
        self.stack.supervisor.until_ready(name)

    def queue_story(self, namespace: str) -> str:
        """What Kueue says about each Workload of the namespace."""
        lines = [
            f"{one['metadata']['name']}: {found['type']}={found['status']} {found['reason']}: {found['message']}"
            for one in self.admin.list(WORKLOADS, namespace=namespace)
            for found in one.get("status", {}).get("conditions", ())
        ]
        return "\n".join([*lines, self.story()])

    def story(self) -> str:
        running = self.stack.supervisor.running.items()
        return "\n".join(f"--- {name}\n{run.last_lines(8)}" for name, run in running if name in ("worker", "beat"))


@contextmanager
def _session(url: str, *, token: str = "") -> Iterator[BrowserSession]:
    session = BrowserSession(url, token=token)
    try:
        yield session
    finally:
        session.close()


@contextmanager
def started(scenario_name: str) -> Iterator[RunningDemo]:
    """With its metrics in Prometheus."""
    scenario = scenarios.scenario_named(scenario_name)
    with tempfile.TemporaryDirectory(prefix="gpu-portal-", ignore_cleanup_errors=True) as state:
        options = Options(
            state=Path(state),
            hardware=scenario.hardware,
            notebooks_at_once=scenario.notebooks,
            monitoring=True,
            # Not those of the test's own process.
            database_url="",
            redis_url="",
        )
        with environment.started(options, scenario=scenario) as (stack, portal, accounts):
            yield RunningDemo(stack, portal, {one["name"]: one for one in accounts})
