"""`run.py demo`: everything on one machine, with people and data to try it with."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from devcluster import pki, postgres, scenarios
from devcluster.portal import NAMES, Portal
from devcluster.processes import Running, is_free
from devcluster.say import Problem, elapsed, note, say, step
from devcluster.scenarios import EVERYDAY, Scenario
from devcluster.stack import ROOT, Options, Stack

STATES = ROOT / ".run"
PORT = 8000
SEED_WITHIN_S = 300.0
RESTARTS_PER_MINUTE = 5


def demo(arguments: argparse.Namespace) -> int:
    scenario = scenarios.find(arguments.scenario)
    _refuse_beside(scenario, arguments)
    arguments.hardware = arguments.hardware or scenario.hardware
    if arguments.check:
        from devcluster import check

        return check.check(arguments)
    began = time.monotonic()
    options = Options(
        state=STATES / scenario.folder,
        hardware=arguments.hardware,
        kubeconfig=arguments.kubeconfig,
        unsafe=False,
        fresh=arguments.fresh,
        notebooks_at_once=scenario.notebooks,
    )
    with started(options, port=_port(arguments.port), scenario=scenario) as (stack, portal, accounts):
        _introduce(scenario, portal, accounts, time.monotonic() - began)
        _watch(stack, portal, accounts)
    return 0


def _refuse_beside(scenario: Scenario, arguments: argparse.Namespace) -> None:
    """A scenario brings its hardware; the check walks the everyday demo."""
    given = {"--hardware": arguments.hardware, "--kubeconfig": arguments.kubeconfig, "--check": arguments.check}
    beside = [flag for flag, value in given.items() if value]
    if scenario != EVERYDAY and beside:
        raise Problem(
            f"The scenario {scenario.name} brings its own simulated nodes and people.",
            f"Leave out {' and '.join(beside)}, or leave out --scenario.",
        )


@contextmanager
def started(
    options: Options, *, port: int | None = None, scenario: Scenario = EVERYDAY
) -> Iterator[tuple[Stack, Portal, list[dict[str, Any]]]]:
    """The stack and the portal on it, seeded and reachable; all of it ends with the block."""
    with Stack(options) as stack:
        if port is not None:
            stack.ports["gateway"] = port
        stack.start(meanwhile=lambda: _begin_seed(stack, scenario))
        portal = _portal(stack)
        with step("Database tables and accounts"):
            _end(stack.supervisor.finish("seed-people", within_s=SEED_WITHIN_S))
        with step(f"The portal answers: {', '.join(NAMES)}"):
            for command in portal.commands():
                stack.supervisor.start(command)
            stack.supervisor.until_ready(*NAMES)
        with step("Catalog and demo data"):
            _end(stack.supervisor.run(portal.seed("catalog", scenario.name), within_s=SEED_WITHIN_S))
        accounts = json.loads((stack.state / "accounts.json").read_text())
        write(stack, portal, accounts)
        try:
            yield stack, portal, accounts
        finally:
            for path in described_in(stack.state):
                path.unlink(missing_ok=True)


def keep_logs(stack: Stack) -> Path:
    """Out of a state directory that goes away."""
    kept = ROOT / ".run" / "log"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(stack.log_dir, kept)
    return kept


def write(stack: Stack, portal: Portal, accounts: list[dict[str, Any]]) -> None:
    """demo.json: what a person, a browser test or a script needs to know."""
    stack.write()
    content = {
        "portal_url": portal.url,
        "notebooks_domain": portal.notebooks_domain,
        "kubeconfig": stack.services["kubeconfigs"]["admin"],
        "accounts": accounts,
        "database_url": portal.services["database_url"],
        "redis_url": portal.services["redis_url"],
        "process_ids": {**stack.supervisor.pids(), "supervisor": os.getpid()},
    }
    for path in described_in(stack.state):
        pki.write_private(path, json.dumps(content, indent=1))


def described_in(state: Path) -> list[Path]:
    """The demo's description lies where people look for it, a check's beside its own data only."""
    own = state / "demo.json"
    return [own, state.with_suffix(".json")] if state.parent == STATES.resolve() else [own]


def _portal(stack: Stack) -> Portal:
    services = dict(stack.services)
    if not stack.options.database_url:
        services["database_url"] = postgres.ensure_database(services["database_url"], "portal")
    return Portal(stack.state, services, stack.ports, stack.programs["caddy"])


def _begin_seed(stack: Stack, scenario: Scenario) -> None:
    stack.supervisor.start(_portal(stack).seed("people", scenario.name))


def _end(ran: Running) -> None:
    if ran.process.returncode:
        raise Problem(
            f"{ran.command.name} failed. Its last lines:\n{ran.last_lines()}",
            f"The whole log is {ran.log}. With --fresh the demo starts over without its data.",
        )


def _port(wanted: int | None) -> int | None:
    """None: a free one."""
    if wanted is not None:
        if not is_free(wanted):
            raise Problem(f"Port {wanted} is in use on this machine.", "Choose another with --port, or leave it out.")
        return wanted
    if is_free(PORT):
        return PORT
    note(f"Port {PORT} is in use; taking a free one (choose one with --port)")
    return None


def _introduce(scenario: Scenario, portal: Portal, accounts: list[dict[str, Any]], seconds: float) -> None:
    say(f"\nReady after {elapsed(seconds)}:  {portal.url}\n")
    if scenario.about:
        say(f"{scenario.about}\n")
    for account in accounts:
        role = account["role"] + (f", {account['tenant']}" if account["tenant"] else "")
        say(f"  {account['email']:22} {account['password']:28} {role}")
    say("\nThree things to try:")
    for number, text in enumerate(scenario.to_try, start=1):
        say(f"  {number}. {text.format(url=portal.url)}")
    again = " ".join(["demo", *(["--scenario", scenario.name] if scenario.name else []), "--fresh"])
    say(f"\nCtrl-C stops everything; the data is kept until `{again}`.")


def _watch(stack: Stack, portal: Portal, accounts: list[dict[str, Any]]) -> None:
    """Processes of the portal are started again, as a service manager would do; anything else ends the demo."""
    restarts: list[float] = []
    commands = {command.name: command for command in portal.commands()}
    while True:
        for gone in stack.supervisor.ended():
            name, code = gone.command.name, gone.process.returncode
            restarts = [at for at in restarts if time.monotonic() - at < 60] + [time.monotonic()]
            if name not in commands or len(restarts) > RESTARTS_PER_MINUTE:
                raise Problem(
                    f"{name} ended by itself (exit {code}). Its last lines:\n{gone.last_lines()}",
                    f"The whole log is {gone.log}; start the demo again, its data is kept.",
                )
            note(f"{name} ended (exit {code}); starting it again")
            stack.supervisor.stop(name)
            stack.supervisor.start(commands[name])
            write(stack, portal, accounts)
        time.sleep(0.5)
