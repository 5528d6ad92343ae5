"""A Prometheus that has exactly the samples of a text, and what it scrapes."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devcluster.controlplane import programs
from devcluster.processes.ports import free_port
from devcluster.processes.supervisor import Command, Supervisor


@dataclass(frozen=True)
class Samples:
    """One series: Unix seconds → value."""

    name: str
    labels: Mapping[str, str]
    values: Mapping[float, float]


@contextmanager
def prometheus_with(samples: Iterable[Samples], folder: Path, *, scrapes: int | None = None) -> Iterator[str]:
    """Yields its URL. `scrapes`: a port on this machine, every second; None: it scrapes nothing."""
    data, text = folder / "data", folder / "samples.txt"
    known = list(samples)
    text.write_text(open_metrics(known))
    jobs = (
        [] if scrapes is None else [{"job_name": "exporter", "static_configs": [{"targets": [f"127.0.0.1:{scrapes}"]}]}]
    )
    settings = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs}
    (folder / "prometheus.yml").write_text(json.dumps(settings))
    port = free_port()
    with Supervisor(folder / "log") as supervisor:
        found = programs.find_or_build(supervisor, programs.MONITORING)
        if known:
            blocks = [found["promtool"], "tsdb", "create-blocks-from", "openmetrics", text, data]
            subprocess.run(list(map(str, blocks)), check=True, capture_output=True, timeout=120)
        argv = [
            found["prometheus"],
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={data}",
            "--storage.tsdb.retention.time=10y",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        url = f"http://127.0.0.1:{port}"
        supervisor.start(Command("prometheus", argv, ready=lambda: _is_ready(url)))
        supervisor.until_ready("prometheus")
        yield url


def open_metrics(samples: Iterable[Samples]) -> str:
    by_name: dict[str, list[Samples]] = {}
    for one in samples:
        by_name.setdefault(one.name, []).append(one)
    lines = []
    for name, found in by_name.items():
        lines.append(f"# TYPE {name} gauge")
        for one in found:
            labels = ",".join(f'{label}="{value}"' for label, value in one.labels.items())
            lines += [f"{name}{{{labels}}} {value!r} {moment:.3f}" for moment, value in sorted(one.values.items())]
    return "\n".join([*lines, "# EOF", ""])


def _is_ready(url: str) -> bool:
    with urllib.request.urlopen(f"{url}/-/ready", timeout=2) as answer:
        return bool(answer.status == 200)
