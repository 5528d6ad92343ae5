"""Hours of runs against a real Prometheus, whose samples are those of dcgm-exporter and of AMD's exporter, with the
labels of a ServiceMonitor and without; compared with queries of our own at random moments.
"""

from __future__ import annotations

import json
import random
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from portal.core.connections.prometheus_server import PrometheusServer
from tenants.models import Namespace
from tests.support.processes.prometheus import Samples, prometheus_with
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.usage.telemetry.rows import MINUTE, held_run
from usage.telemetry import collection
from usage.telemetry.models import RunHour, TelemetrySource
from usage.telemetry.prometheus import PrometheusUnreadable, query_range
from usage.telemetry.promql import queries
from workloads.models import Run

BEGIN = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MINUTES = 130
SCRAPE_S = 15
SCRAPES = range(7, MINUTES * 60, SCRAPE_S)
SERVICE_MONITOR = {
    "namespace": "gpu-operator",
    "pod": "nvidia-dcgm-exporter-x7k2p",
    "container": "nvidia-dcgm-exporter",
}
NAMESPACE = "team-a-metrics"


@dataclass(frozen=True)
class Device:
    """One device of a pod. `figures`: metric → factor of the exporter's unit to percent, MiB or W."""

    pod: str
    labels: dict[str, str]
    figures: dict[str, float]
    exported: bool = True
    missing: range = range(0)

    def value(self, metric: str, second: int) -> float:
        wave = random.Random(f"{self.pod}{self.labels}{metric}{second // 300}").uniform(0, 100)
        return (wave + second % 60 / 10) / self.figures[metric]

    def samples(self, namespace: str) -> Iterator[Samples]:
        names = {"namespace": namespace, "pod": self.pod, "container": "main"}
        of_pod = (
            {f"exported_{key}": value for key, value in names.items()} | SERVICE_MONITOR if self.exported else names
        )
        for metric in self.figures:
            values = {
                BEGIN.timestamp() + second: self.value(metric, second)
                for second in SCRAPES
                if second // 60 not in self.missing
            }
            yield Samples(metric, self.labels | of_pod, values)


DCGM = {
    "DCGM_FI_DEV_GPU_UTIL": 1.0,
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 100.0,
    "DCGM_FI_DEV_FB_USED": 1.0,
    "DCGM_FI_DEV_FB_FREE": 1.0,
    "DCGM_FI_DEV_POWER_USAGE": 1.0,
}
RENAMED = {"DCGM_FI_DEV_GPU_UTIL_RATIO": 100.0, "DCGM_FI_DEV_FB_USED": 1.0, "DCGM_FI_DEV_FB_FREE": 1.0}
AMD = {"gpu_gfx_activity": 1.0, "gpu_used_vram": 1.0, "gpu_free_vram": 1.0, "gpu_package_power": 1.0}
WHOLE = [
    Device("whole-1-aaaaa", {"UUID": "GPU-1", "gpu": "0"}, DCGM, missing=range(70, 75)),
    Device("whole-1-aaaaa", {"UUID": "GPU-2", "gpu": "1"}, DCGM, missing=range(70, 75)),
]
SLICES = [
    Device("slice-1-bbbbb", {"UUID": "GPU-3", "GPU_I_ID": "7", "GPU_I_PROFILE": "1g.10gb"}, DCGM),
    Device("other-1-ccccc", {"UUID": "GPU-3", "GPU_I_ID": "8", "GPU_I_PROFILE": "1g.10gb"}, DCGM),
]
SHARED = [Device("shared-1-ddddd", {"UUID": "GPU-4"}, DCGM, exported=False)]
PLAIN = [Device("plain-1-eeeee", {"UUID": "GPU-5"}, RENAMED, exported=False)]
AMDS = [Device("amd-1-fffff", {"gpu_id": str(number), "card_model": "MI300X"}, AMD) for number in range(2)]
ALL = [*WHOLE, *SLICES, *SHARED, *PLAIN, *AMDS]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    # A device that no pod holds, as a ServiceMonitor brings it: with the namespace and pod of the exporter alone.
    idle = Samples(
        "DCGM_FI_DEV_GPU_UTIL", {"UUID": "GPU-9", **SERVICE_MONITOR}, {BEGIN.timestamp() + s: 0.0 for s in SCRAPES}
    )
    samples = [idle, *(one for device in ALL for one in device.samples(NAMESPACE))]
    # The second of a pair of Prometheus servers has the same series again.
    again = [Samples(one.name, {**one.labels, "replica": "b"}, one.values) for one in WHOLE[0].samples(NAMESPACE)]
    with prometheus_with([*samples, *again], tmp_path_factory.mktemp("prometheus")) as found:
        yield found


@pytest.fixture
def runs(cluster: Cluster, namespace_a: Namespace, a100: GpuClass, alice: User) -> dict[str, Run]:
    Namespace.objects.filter(pk=namespace_a.pk).update(name=NAMESPACE)
    namespace_a.refresh_from_db()
    slice_ = make.gpu_class(
        cluster, slug="slice", partition="1g.10gb", resource="nvidia.com/mig-1g.10gb", node_labels={}
    )
    shared = make.gpu_class(
        cluster, slug="shared", sharing="time-slicing", replicas=4, units_per_workload=1, node_labels={}
    )
    classes = {"whole": a100, "slice": slice_, "other": slice_, "shared": shared, "plain": a100, "amd": a100}
    return {name: held_run(namespace_a, one, alice, BEGIN, name=name) for name, one in classes.items()}


def read(url: str, *moments: datetime) -> None:
    for moment in moments:
        collection.read_telemetry(server=PrometheusServer(url), at=moment + timedelta(seconds=12))
        assert TelemetrySource.objects.get().problem == ""


def asked(url: str, query: str, at: datetime) -> float:
    """One number, by a query of the test's own."""
    form = urllib.parse.urlencode({"query": query, "time": at.timestamp()})
    with urllib.request.urlopen(f"{url}/api/v1/query?{form}", timeout=10) as answer:
        [found] = json.load(answer)["data"]["result"]
    return float(found["value"][1])


# Per run: what its hour's mean is, as the queries that people write: means over the same minutes.
MEANS = {
    "whole": 'avg(avg_over_time(DCGM_FI_DEV_GPU_UTIL{{exported_pod=~"whole-1-.*", replica=""}}[{range}]))',
    "slice": 'avg(100 * avg_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE{{exported_pod=~"slice-1-.*"}}[{range}]))',
    "other": 'avg(100 * avg_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE{{exported_pod=~"other-1-.*"}}[{range}]))',
    "shared": 'avg(avg_over_time(DCGM_FI_DEV_GPU_UTIL{{pod=~"shared-1-.*"}}[{range}]))',
    "plain": 'avg(100 * avg_over_time(DCGM_FI_DEV_GPU_UTIL_RATIO{{pod=~"plain-1-.*"}}[{range}]))',
    "amd": 'avg(avg_over_time(gpu_gfx_activity{{exported_pod=~"amd-1-.*"}}[{range}]))',
}
MEMORY = {
    "whole": 'sum(avg_over_time(DCGM_FI_DEV_FB_USED{{exported_pod=~"whole-1-.*", replica=""}}[{range}]))',
    "slice": 'sum(avg_over_time(DCGM_FI_DEV_FB_USED{{exported_pod=~"slice-1-.*"}}[{range}]))',
    "amd": 'sum(avg_over_time(gpu_used_vram{{exported_pod=~"amd-1-.*"}}[{range}]))',
}
MEASURES = {
    "whole": "utilisation",
    "slice": "engine",
    "other": "engine",
    "shared": "shared",
    "plain": "utilisation",
    "amd": "utilisation",
}


def test_figures_equal_the_queries_at_random_moments(cluster: Cluster, url: str, runs: dict[str, Run]) -> None:
    """50 moments, read at other random moments before each."""
    dice = random.Random(7)
    moments = sorted(dice.sample(range(2, MINUTES), 50))
    read(url, BEGIN)
    for minute in moments:
        now = BEGIN + minute * MINUTE
        read(url, now)
        hour = (now - MINUTE).replace(minute=0)
        since = max(hour, BEGIN)
        for name, run in runs.items():
            row = RunHour.objects.filter(run=run, hour=hour).first()
            assert row is not None, (name, minute)
            values = {"range": f"{int((now - since).total_seconds())}s"}
            assert row.activity_sum / row.seen_minutes.bit_count() == pytest.approx(
                asked(url, MEANS[name].format(**values), now), rel=0.01
            ), (name, minute)
            assert row.measure == MEASURES.get(name, "utilisation")
            if name in MEMORY:
                assert row.memory_sum_mib / row.memory_samples == pytest.approx(
                    asked(url, MEMORY[name].format(**values), now), rel=0.01
                ), (name, minute)


def test_minutes_without_samples_are_not_seen(cluster: Cluster, url: str, runs: dict[str, Run]) -> None:
    read(url, BEGIN, BEGIN + MINUTES * MINUTE)
    for back in range(1, 4):
        read(url, BEGIN + (MINUTES + back) * MINUTE)
    seen = RunHour.objects.get(run=runs["whole"], hour=BEGIN + timedelta(hours=1)).seen_minutes
    assert [minute for minute in range(60) if not seen >> minute & 1] == list(range(10, 15))
    assert RunHour.objects.get(run=runs["slice"], hour=BEGIN + timedelta(hours=1)).seen_minutes == (1 << 60) - 1
    # After the last sample nothing is seen, although Prometheus answers.
    assert RunHour.objects.get(run=runs["whole"], hour=BEGIN + timedelta(hours=2)).seen_minutes == (1 << 10) - 1


def test_the_sites_own_name_of_a_metric(cluster: Cluster, url: str, runs: dict[str, Run]) -> None:
    """A site that renames in its scrape configuration."""
    server = PrometheusServer(url, metrics={"utilisation": "DCGM_FI_DEV_FB_USED"})
    collection.read_telemetry(server=server, at=BEGIN + 3 * MINUTE + timedelta(seconds=12))
    row = RunHour.objects.get(run=runs["whole"])
    assert row.activity_last == pytest.approx(row.memory_last_mib / 2)


def test_a_busy_prometheus_is_one_sentence(url: str) -> None:
    with pytest.raises(PrometheusUnreadable, match=r"status 400 \(bad_data\)"):
        query_range(PrometheusServer(url), "up{", start=0, end=60, step_s=60, until=time.monotonic() + 5)
    query, moment = "DCGM_FI_DEV_FB_USED * on() DCGM_FI_DEV_FB_FREE", BEGIN.timestamp() + 600
    with pytest.raises(PrometheusUnreadable, match=r"status 422 \(execution\)"):
        query_range(PrometheusServer(url), query, start=moment, end=moment, step_s=60, until=time.monotonic() + 5)


class Exporter:
    """Serves one device of one pod, with plain labels, until it is closed."""

    def __init__(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(b'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1",namespace="team-a",pod="one-1-abcde"} 42\n')

            def log_message(self, *_args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def test_an_exporter_that_stops_has_no_minute(tmp_path: Path) -> None:
    """Although there are samples in the minute: otherwise its last part would pass for all of it."""
    exporter = Exporter()
    try:
        with prometheus_with([], tmp_path, scrapes=exporter.server.server_port) as url:
            query = queries({})["utilisation"]

            def answered() -> int:
                now = time.time()
                found = query_range(
                    PrometheusServer(url), query, start=now, end=now, step_s=60, until=time.monotonic() + 5
                )
                return len(found.series)

            wait_until(lambda: answered() == 1, what="a sample")
            exporter.close()
            wait_until(lambda: answered() == 0, what="the end of the series", within_s=15)
            sampled = 'count_over_time(DCGM_FI_DEV_GPU_UTIL{pod="one-1-abcde"}[1m])'
            assert asked(url, sampled, datetime.now(UTC)) >= 1
    finally:
        if exporter.thread.is_alive():
            exporter.close()
