"""`run.py demo`: everything on one machine, with demo users and data."""

from __future__ import annotations

import argparse
import time
from typing import Any

from devcluster.compose import engine
from devcluster.demo import scenarios
from devcluster.demo.environment import STATES, started, write_description
from devcluster.demo.scenarios import EVERYDAY, QUIET, Scenario
from devcluster.processes.console import UserError, elapsed, note, say
from devcluster.processes.ports import is_free
from devcluster.services.portal import Portal
from devcluster.services.stack import Options, Stack

PORT = 8000
RESTARTS_PER_MINUTE = 5


def demo(arguments: argparse.Namespace) -> int:
    # On a real cluster the workloads of the sample data would use real GPUs.
    default = QUIET.name if arguments.kubeconfig else EVERYDAY.name
    scenario = scenarios.scenario_named(arguments.scenario or default)
    _refuse_beside(scenario, arguments)
    arguments.hardware = arguments.hardware or scenario.hardware
    arguments.real_node = arguments.real_node or arguments.deployed or arguments.compose
    if arguments.check:
        from devcluster.demo import check

        return check.check(arguments, scenario)
    began = time.monotonic()
    options = Options(
        state=STATES / scenario.folder,
        hardware=arguments.hardware,
        kubeconfig=arguments.kubeconfig,
        unsafe=False,
        fresh=arguments.fresh,
        notebooks_at_once=scenario.notebooks,
        monitoring=not arguments.deployed,
        mig_manager=True,
        real_node=arguments.real_node,
        deployed=arguments.deployed,
    )
    with started(options, port=_port(arguments.port), scenario=scenario) as (stack, portal, accounts):
        _introduce(scenario, portal, accounts, time.monotonic() - began)
        _watch(stack, portal, accounts)
    return 0


def _refuse_beside(scenario: Scenario, arguments: argparse.Namespace) -> None:
    """Raises UserError for options that a scenario excludes: it has its own hardware and users, and `--check` uses the
    everyday demo.
    """
    given = {"--hardware": arguments.hardware, "--kubeconfig": arguments.kubeconfig, "--check": arguments.check}
    beside = [flag for flag, value in given.items() if value]
    if scenario != EVERYDAY and not scenario.runs_anywhere and beside:
        raise UserError(
            f"The scenario {scenario.name} has its own simulated nodes and users.",
            f"Omit {' and '.join(beside)}, or omit --scenario.",
        )
    if arguments.compose and not arguments.check:
        raise UserError("docker-compose.yml is run to be checked, and then stopped.", "Add --check.")
    if arguments.compose and arguments.deployed:
        raise UserError("The portal runs from docker-compose.yml or from deploy/.", "Omit --compose or --deployed.")
    if arguments.kubeconfig and (arguments.real_node or arguments.deployed or arguments.compose):
        raise UserError("A real node is part of the embedded cluster.", "Omit --kubeconfig to use that one.")
    if arguments.compose:
        engine.check()


def _port(wanted: int | None) -> int | None:
    """Returns the gateway's port, or None if any free port may be used."""
    if wanted is not None:
        if not is_free(wanted):
            raise UserError(f"Port {wanted} is in use on this machine.", "Choose another port with --port, or omit it.")
        return wanted
    if is_free(PORT):
        return PORT
    note(f"Port {PORT} is in use; a free port is used instead (choose one with --port)")
    return None


def _introduce(scenario: Scenario, portal: Portal, accounts: list[dict[str, Any]], seconds: float) -> None:
    say(f"\nReady after {elapsed(seconds)}:  {portal.url}\n")
    if scenario.about:
        say(f"{scenario.about}\n")
    for account in accounts:
        role = account["role"] + (f", {account['tenant']}" if account["tenant"] else "")
        say(f"  {account['email']:22} {account['password']:28} {role}")
    say("\nThings to try:")
    for number, text in enumerate(scenario.to_try, start=1):
        say(f"  {number}. {text.format(url=portal.url)}")
    again = " ".join(["demo", *(["--scenario", scenario.name] if scenario.name else []), "--fresh"])
    say(f"\nCtrl-C stops everything; the data is kept until `{again}`.")


def _watch(stack: Stack, portal: Portal, accounts: list[dict[str, Any]]) -> None:
    """Restarts a process of the portal that exits, as a service manager does. The demo ends if any other process exits,
    or after more than RESTARTS_PER_MINUTE restarts in a minute.
    """
    restarts: list[float] = []
    commands = {command.name: command for command in portal.commands()}
    while True:
        for gone in stack.supervisor.ended():
            name, code = gone.command.name, gone.process.returncode
            restarts = [at for at in restarts if time.monotonic() - at < 60] + [time.monotonic()]
            if name not in commands or len(restarts) > RESTARTS_PER_MINUTE:
                raise UserError(
                    f"{name} exited unexpectedly (exit code {code}). Its last lines:\n{gone.last_lines()}",
                    f"Full log: {gone.log}. Start the demo again; its data is kept.",
                )
            note(f"{name} exited (exit code {code}); restarting it")
            stack.supervisor.stop(name)
            stack.supervisor.start(commands[name])
            write_description(stack, portal, accounts)
        time.sleep(0.5)
