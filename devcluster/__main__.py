"""The commands of `run.py`, inside the virtual environment."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from devcluster.processes.console import UserError, print_error, say
from devcluster.processes.supervisor import Interrupted, interrupt_on_signals

COMPOSE = "with --check: the portal itself in containers of docker-compose.yml, with podman (needs root)"
DEPLOYED = "run the portal itself in containers of a real node, applied from deploy/"
REAL_NODE = "a node with kubelet and containerd beside the simulated ones (needs root)"


def main(argv: list[str]) -> int:
    arguments, rest = _parser().parse_known_args(argv)
    if rest and not arguments.passes_on:
        _parser().error(f"unknown arguments: {' '.join(rest)}")
    interrupt_on_signals()
    try:
        module = importlib.import_module(f"devcluster.{arguments.module}")  # each command imports only what it needs
        run = getattr(module, arguments.function)
        return int((run(arguments, rest) if arguments.passes_on else run(arguments)) or 0)
    except UserError as problem:
        print_error(problem)
        return 1
    except (KeyboardInterrupt, Interrupted):
        say("Stopped.")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="run.py", description="A GPU portal with a real Kubernetes cluster.", allow_abbrev=False
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        name: str, module: str, function: str, text: str, *, passes_on: bool = False
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        added.set_defaults(module=module, function=function, passes_on=passes_on)
        added.add_argument(
            "--kubeconfig", type=Path, metavar="FILE", help="use this cluster instead of an embedded one"
        )
        added.add_argument("--hardware", default="mixed", metavar="NAME", help="simulated hardware (default: mixed)")
        return added

    demo = command("demo", "demo.command", "demo", "Start everything with demo data and run until Ctrl-C.")
    demo.set_defaults(hardware="")  # the scenario's own
    demo.add_argument("--scenario", default="", metavar="NAME", help="start with a scenario: morning, waste")
    demo.add_argument("--check", action="store_true", help="run the main path, verify it in the cluster, stop")
    demo.add_argument("--fresh", action="store_true", help="delete the data of earlier demos first")
    demo.add_argument("--real-node", action="store_true", help=REAL_NODE)
    demo.add_argument("--deployed", action="store_true", help=DEPLOYED)
    demo.add_argument("--compose", action="store_true", help=COMPOSE)
    demo.add_argument("--port", type=int, help="the gateway's port (default: 8000, or a free one)")
    up = command("up", "cli.up", "up", "Start the services only and keep them for `test --reuse`.")
    up.add_argument("--real-node", action="store_true", help=REAL_NODE)
    test = command(
        "test",
        "cli.testing",
        "test",
        "Run checks, then all tests; other arguments are passed to pytest.",
        passes_on=True,
    )
    test.add_argument("--reuse", action="store_true", help="no checks, and the services of `up`: for fast iteration")
    test.add_argument(
        "--changed", nargs="?", const="main", metavar="BASE", help="only tests related to changes since BASE (main)"
    )
    bench = command("bench", "cli.bench", "bench", "Run benchmarks against their limits; one line of JSON per figure.")
    bench.add_argument("name", nargs="?", help="one benchmark")
    bench.add_argument("--list", action="store_true", help="list them")
    command("can-run-node", "node.machine", "can_run", "Say whether this machine can have a real node.")
    command("can-run-compose", "compose.engine", "can_run", "Say whether this machine can run docker-compose.yml.")
    soak = command("soak", "cli.testing", "soak", "Run tests that take minutes.", passes_on=True)
    soak.add_argument("name", nargs="?", help="one soak test")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
