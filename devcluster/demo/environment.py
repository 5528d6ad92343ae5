"""Starts the stack and a portal with demo data, as one context manager, and writes demo.json, which describes them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from devcluster.compose.composed import ComposedPortal
from devcluster.demo import past
from devcluster.demo.scenarios import EVERYDAY, Scenario
from devcluster.processes import private_files
from devcluster.processes.console import UserError, say, step
from devcluster.processes.paths import ROOT
from devcluster.processes.supervisor import RunningProcess
from devcluster.services import postgres
from devcluster.services.deployed import DeployedPortal
from devcluster.services.portal import NAMES, Portal
from devcluster.services.stack import Options, Stack

STATES = ROOT / ".run"

SEED_WITHIN_S = 300.0


@contextmanager
def started(
    options: Options, *, port: int | None = None, scenario: Scenario = EVERYDAY
) -> Iterator[tuple[Stack, Portal, list[dict[str, Any]]]]:
    """Starts the stack and the portal, and creates the demo data. Everything is stopped at the end of the block."""
    with Stack(options) as stack, ExitStack() as at_the_end:
        if port is not None:
            stack.ports["gateway"] = port
        try:
            if options.composed:
                portal = _in_compose(stack, scenario, at_the_end)
            else:
                portal = _in_containers(stack, scenario) if options.deployed else _as_processes(stack, scenario)
        except UserError:
            keep_logs(stack)
            raise
        with step("Catalog and demo data"):
            _end(stack.supervisor.run(portal.seed("catalog", scenario.name), within_s=SEED_WITHIN_S))
        if scenario.past_hours and options.monitoring:
            with step(f"The {scenario.past_hours} hours before"):
                past.create_past(stack, portal, scenario)
        accounts = json.loads((stack.state / "accounts.json").read_text())
        write_description(stack, portal, accounts)
        try:
            yield stack, portal, accounts
        finally:
            for path in description_files(stack.state):
                path.unlink(missing_ok=True)


def _as_processes(stack: Stack, scenario: Scenario) -> Portal:
    def begin_seed() -> None:
        stack.supervisor.start(_portal(stack).seed("people", scenario.name))

    stack.start(meanwhile=begin_seed)
    portal = _portal(stack)
    with step("Database tables and accounts"):
        _end(stack.supervisor.finish("seed-people", within_s=SEED_WITHIN_S))
    with step(f"The portal answers: {', '.join(NAMES)}"):
        for command in portal.commands():
            stack.supervisor.start(command)
        stack.supervisor.until_ready(*NAMES)
    return portal


def _in_containers(stack: Stack, scenario: Scenario) -> Portal:
    stack.start()
    portal = replace(_portal(stack), scheme="https")
    deployed = DeployedPortal(stack, portal)
    deployed.start()
    with step("Accounts"):
        _end(stack.supervisor.run(portal.seed("people", scenario.name), within_s=SEED_WITHIN_S))
    with step(f"The portal answers: two replicas of {', '.join(NAMES)}"):
        deployed.await_ready()
    return portal


def _in_compose(stack: Stack, scenario: Scenario, at_the_end: ExitStack) -> Portal:
    stack.start()
    composed = ComposedPortal.of(stack, _portal(stack))
    stack.container_logs = composed.write_logs
    at_the_end.callback(composed.down)
    portal = composed.start()
    with step("Accounts"):
        _end(stack.supervisor.run(portal.seed("people", scenario.name), within_s=SEED_WITHIN_S))
    return portal


def keep_logs(stack: Stack) -> Path:
    """Copies the logs to .run/log, because the state directory will be deleted. Prints the end of those of containers,
    which nothing else shows.
    """
    if last := stack.container_logs():
        say(last)
    kept = ROOT / ".run" / "log"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(stack.log_dir, kept)
    if stack.real_node is not None:
        shutil.copytree(stack.real_node.folder / "log", kept / "node", symlinks=True)
    return kept


def write_description(stack: Stack, portal: Portal, accounts: list[dict[str, Any]]) -> None:
    """Writes demo.json: what a person, a browser test or a script needs to use the portal."""
    stack.write()
    content = {
        "portal_url": portal.url,
        "notebooks_domain": portal.notebooks_domain,
        "kubeconfig": stack.services["kubeconfigs"]["admin"],
        "accounts": accounts,
        "database_url": portal.services["database_url"],
        "redis_url": portal.services["redis_url"],
        "prometheus_url": stack.services.get("prometheus_url", ""),
        "process_ids": {**stack.supervisor.pids(), "supervisor": os.getpid()},
    }
    for path in description_files(stack.state):
        private_files.write_private(path, json.dumps(content, indent=1))


def description_files(state: Path) -> list[Path]:
    """Returns where the description is written: to demo.json in the state directory and, for `run.py demo`, also to
    .run/demo.json (or .run/demo-SCENARIO.json).
    """
    own = state / "demo.json"
    return [own, state.with_suffix(".json")] if state.parent == STATES.resolve() else [own]


def _portal(stack: Stack) -> Portal:
    services = dict(stack.services)
    if not stack.options.database_url:
        services["database_url"] = postgres.ensure_database(services["database_url"], "portal")
        services["has_logins"] = True
    return Portal(stack.state, services, stack.ports, stack.programs["caddy"])


def _end(ran: RunningProcess) -> None:
    if ran.process.returncode:
        raise UserError(
            f"{ran.command.name} failed. Its last lines:\n{ran.last_lines()}",
            f"Full log: {ran.log}. Use --fresh to start the demo without its data.",
        )
