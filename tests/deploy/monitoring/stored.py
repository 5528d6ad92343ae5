"""A Prometheus of its own for a test, with stored series and what the recording rules make of them."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from devcluster.controlplane.programs import Programs
from devcluster.processes.ports import free_port
from devcluster.processes.supervisor import Command, Supervisor
from tests.deploy.monitoring.promtool import RULES

# Rules that read others are evaluated once more for each step of that order.
STEPS = 3


class Prometheus:
    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def get(self, path: str, **parameters: object) -> Any:
        """Returns the data of an answer, or says what is wrong with the query."""
        try:
            with urllib.request.urlopen(f"{self.url}{path}?{urllib.parse.urlencode(parameters)}", timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(json.load(error)["error"]) from error

    def query(self, expression: str, at_s: int) -> list[tuple[dict[str, str], float]]:
        """Returns labels and values."""
        found = self.get("/api/v1/query", query=expression, time=at_s)["result"]
        return [(one["metric"], float(one["value"][1])) for one in found]

    def label_values(self, metric: str, label: str, begin_s: int, end_s: int) -> set[str]:
        parameters = {"match[]": metric, "start": begin_s, "end": end_s}
        return set(self.get(f"/api/v1/label/{label}/values", **parameters))


@contextmanager
def stored(programs: Programs, folder: Path, openmetrics: str, *, begin_s: int, end_s: int) -> Iterator[Prometheus]:
    data, text, port = folder / "data", folder / "series.txt", free_port()
    text.write_text(openmetrics)
    (folder / "prometheus.yaml").write_text("{}")
    promtool(programs, "tsdb", "create-blocks-from", "openmetrics", text, data)
    found = Prometheus(port)
    argv = [
        programs["prometheus"],
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with Supervisor(folder / "log") as supervisor:
        supervisor.start(Command("prometheus", argv, ready=lambda: is_ready(found)))
        supervisor.until_ready()
        for _ in range(STEPS):
            span = ["--start", begin_s, "--end", end_s, "--eval-interval", "1m", "--url", found.url]
            records = RULES / "gpu-records.yaml"
            promtool(programs, "tsdb", "create-blocks-from", "rules", *span, "--output-dir", data, records)
            supervisor.restart("prometheus")  # It looks for new blocks at its start.
        yield found


def is_ready(prometheus: Prometheus) -> bool:
    with urllib.request.urlopen(f"{prometheus.url}/-/ready", timeout=2) as answer:
        return bool(answer.status == 200)


def promtool(programs: Programs, *arguments: object) -> None:
    argv = [str(one) for one in (programs["promtool"], *arguments)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert not done.returncode, done.stdout + done.stderr
