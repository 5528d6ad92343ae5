"""The commands of `run.py`, inside the virtual environment."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from devcluster.processes import Interrupted, interrupt_on_signals
from devcluster.say import Problem, complain, say


def main(argv: list[str]) -> int:
    arguments = _parser().parse_args(argv)
    interrupt_on_signals()
    try:
        return int(arguments.run(arguments))
    except Problem as problem:
        complain(problem)
        return 1
    except (KeyboardInterrupt, Interrupted):
        say("Stopped.")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="run.py", description="A GPU portal with a real Kubernetes behind it.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    up = commands.add_parser("up", help="start the services only and keep them for `test --reuse`")
    up.set_defaults(run=_up)
    _common(up)
    return parser


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="use this cluster instead of an embedded one")
    parser.add_argument("--hardware", default="mixed", metavar="NAME", help="simulated hardware (default: mixed)")


def _up(arguments: argparse.Namespace) -> int:
    from devcluster import up

    return up.up(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
