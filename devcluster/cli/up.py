"""`run.py up`: starts only the services and keeps them running in the foreground, for `test --reuse` and for
inspection.
"""

from __future__ import annotations

import argparse
import time
from typing import NoReturn

from devcluster.processes.console import UserError, note, say
from devcluster.processes.paths import ROOT
from devcluster.services.stack import Options, Stack

STATE = ROOT / ".run" / "up"


def up(arguments: argparse.Namespace) -> None:
    # fresh: data that an earlier run left could cause misleading errors in tests.
    options = Options(
        state=STATE,
        hardware=arguments.hardware,
        kubeconfig=arguments.kubeconfig,
        fresh=True,
        real_node=arguments.real_node,
    )
    with Stack(options) as stack:
        stack.start()
        note("All services are running; Ctrl-C stops them.")
        say(f"  described in    {STATE / 'services.json'}")
        say(f"  kubectl         --kubeconfig {stack.services['kubeconfigs']['admin']}")
        say("  inner loop      python3 run.py test --reuse -k WORDS")
        watch(stack)


def watch(stack: Stack) -> NoReturn:
    """Waits until a signal arrives. Raises UserError if a service exits by itself."""
    while True:
        for gone in stack.supervisor.ended():
            raise UserError(
                f"{gone.command.name} exited unexpectedly (exit code {gone.process.returncode}). Its last lines:\n"
                f"{gone.last_lines()}",
                f"Full log: {gone.log}. Start again.",
            )
        time.sleep(0.5)
