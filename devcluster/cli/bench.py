"""`run.py bench`: measures figures and compares them with limits; prints one line of JSON per figure.

    @benchmark("click", "the cost of a launch over a raw request")
    def click(context: Context) -> Iterator[Figure]: ...

The benchmarks are in tests/perf/. One that needs no cluster says `@benchmark(..., cluster=False)` and gets only
PostgreSQL and Redis: the processes of a control plane and a portal would use a different share of the processor in
every round.

A figure compares the portal (`ours`) with a `peer`, for example a raw request. Both are measured alternately in one
call, in at least six rounds. The first round is not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from devcluster.client.kube import Api
from devcluster.processes import console
from devcluster.processes.console import UserError, note
from devcluster.processes.paths import ROOT
from devcluster.services.stack import Options, Stack

ROUNDS_AT_LEAST = 6


@dataclass(frozen=True)
class Bar:
    """The limit of a figure. It applies to the median over the rounds: of ours / peer (`ratio`), of ours minus peer
    (`delta`), or of `ours` alone.
    """

    of: Literal["ratio", "delta", "ours"]
    at_most: float

    def __str__(self) -> str:
        return f"{self.of} <= {self.at_most:g}"


@dataclass(frozen=True)
class Figure:
    """`rounds`: (ours, peer) of each round, including the first, which is not counted. A figure without a bar is only
    for information.
    """

    name: str
    unit: str
    peer_name: str
    rounds: list[tuple[float, float]]
    bar: Bar | None = None


@dataclass(frozen=True)
class Context:
    """What a benchmark works with. Without a cluster: the addresses of PostgreSQL and Redis. With a cluster: also a
    portal with demo data, described by `demo` (the content of demo.json). All benchmarks of one call share it.
    """

    services: dict[str, Any]
    demo: dict[str, Any] = field(default_factory=dict)

    @property
    def admin(self) -> Api:
        return Api(self.services["kubeconfigs"]["admin"], timeout_s=30)

    def account(self, name: str) -> dict[str, Any]:
        return next(account for account in self.demo["accounts"] if account["name"] == name)


Run = Callable[[Context], Iterable[Figure]]


@dataclass(frozen=True)
class Benchmark:
    text: str
    run: Run
    cluster: bool


@dataclass
class _Table:
    runs: dict[str, Benchmark] = field(default_factory=dict)


_table = _Table()


def benchmark(name: str, text: str, *, cluster: bool = True) -> Callable[[Run], Run]:
    def register(run: Run) -> Run:
        _table.runs[name] = Benchmark(text, run, cluster)
        return run

    return register


def bench(arguments: argparse.Namespace) -> int:
    """Returns exit code 1 if a figure exceeds its limit. Standard output contains only the figures (or the list)."""
    console.write_to(sys.stderr)
    _find()
    if arguments.list:
        for name, one in sorted(_table.runs.items()):
            print(f"{name:20} {one.text}")
        return 0
    if arguments.name and arguments.name not in _table.runs:
        raise UserError(
            f"Unknown benchmark {arguments.name}.", f"Benchmarks: {', '.join(sorted(_table.runs)) or 'none'}."
        )
    names = [arguments.name] if arguments.name else sorted(_table.runs)
    held = True
    for cluster in (False, True):
        if chosen := [name for name in names if _table.runs[name].cluster is cluster]:
            held = _run(chosen, arguments, cluster=cluster) and held
    return 0 if held else 1


def _run(names: Iterable[str], arguments: argparse.Namespace, *, cluster: bool) -> bool:
    held = True
    with tempfile.TemporaryDirectory(prefix="gpu-portal-", ignore_cleanup_errors=True) as state:
        options = Options(state=Path(state), hardware=arguments.hardware, kubeconfig=arguments.kubeconfig)
        with _ground(options, cluster=cluster) as context:
            for name in names:
                note(f"benchmark {name}")
                for figure in _table.runs[name].run(context):
                    line = summary(figure)
                    held = held and line["holds"] is not False
                    print(json.dumps(line), flush=True)
    return held


@contextlib.contextmanager
def _ground(options: Options, *, cluster: bool) -> Iterator[Context]:
    if not cluster:
        with Stack(options) as stack:
            yield Context(stack.start_stores())
        return
    from devcluster.demo import environment

    with environment.started(options) as (stack, _, _):
        yield Context(stack.services, json.loads((stack.state / "demo.json").read_text()))


def summary(figure: Figure) -> dict[str, Any]:
    """Returns one figure as the content of its line. `holds` is None for a figure without a bar."""
    if len(figure.rounds) < ROUNDS_AT_LEAST:
        raise ValueError(
            f"{figure.name}: {len(figure.rounds)} rounds are too few, at least {ROUNDS_AT_LEAST} are required"
        )
    counted = figure.rounds[1:]
    ratio = _spread([ours / peer if peer else float("inf") for ours, peer in counted])
    delta = _spread([ours - peer for ours, peer in counted])
    ours = statistics.median(ours for ours, _ in counted)
    value = {"ratio": ratio["median"], "delta": delta["median"], "ours": ours}
    return {
        "name": figure.name,
        "unit": figure.unit,
        "ours": round(ours, 4),
        "peer": round(statistics.median(peer for _, peer in counted), 4),
        "peer_name": figure.peer_name,
        "ratio": ratio,
        "delta": delta,
        "rounds": len(counted),
        "bar": str(figure.bar) if figure.bar else None,
        "holds": value[figure.bar.of] <= figure.bar.at_most if figure.bar else None,
    }


def _spread(values: list[float]) -> dict[str, float]:
    return {
        "min": round(min(values), 4),
        "median": round(statistics.median(values), 4),
        "max": round(max(values), 4),
    }


def _find() -> None:
    """Imports the modules of tests/perf and of two of its folders, which registers their benchmarks."""
    for package in ("tests.perf", "tests.perf.background", "tests.perf.overload"):
        for path in sorted((ROOT / package.replace(".", "/")).glob("*.py")):
            if not path.stem.startswith("_"):
                importlib.import_module(f"{package}.{path.stem}")
