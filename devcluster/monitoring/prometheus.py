"""Prometheus: its configuration with the shipped rules for GPUs, its process, and the import of samples of the past.

A target has the labels that a ServiceMonitor of the vendor's operator gives it: namespace, pod and container of the
exporter. NVIDIA's does not honour the labels of the samples, so that Prometheus calls those of the workload
`exported_namespace`, `exported_pod` and `exported_container`; AMD's honours them.
"""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from devcluster.controlplane.programs import Programs
from devcluster.monitoring.devices import NVIDIA, GpuNode
from devcluster.monitoring.profiles import unit
from devcluster.processes.console import UserError
from devcluster.processes.paths import ROOT
from devcluster.processes.supervisor import Command, Supervisor

SCRAPE_S = 15
RETENTION = "2d"
# Those for the portal need its own metrics and those of Kueue, which are not scraped here.
RULES = ROOT / "deploy" / "monitoring" / "rules" / "gpu-*.yaml"
IMPORT_WITHIN_S = 120.0
# Vendor → job, namespace, container and name of the exporter's pods, and whether labels of samples are honoured.
EXPORTERS = {
    "nvidia": ("nvidia-dcgm-exporter", "gpu-operator", "nvidia-dcgm-exporter", "nvidia-dcgm-exporter", False),
    "amd": (
        "amd-device-metrics-exporter",
        "kube-amd-gpu",
        "metrics-exporter-container",
        "default-metrics-exporter",
        True,
    ),
}


def target_labels(node: GpuNode) -> dict[str, str]:
    """Of the node's exporter, `job` included."""
    job, namespace, container, pods, _ = EXPORTERS[node.vendor]
    letters = f"{int(unit(node.name, 'exporter') * 16**5):05x}"
    return {
        "job": job,
        "instance": f"{node.name}:{9400 if node.vendor == NVIDIA else 5000}",
        "namespace": namespace,
        "pod": f"{pods}-{letters}",
        "container": container,
        "node": node.name,
    }


def target(node: GpuNode, address: str) -> dict[str, object]:
    """As http_sd_config expects it. All nodes are served at one address, each at its own path."""
    labels = {name: value for name, value in target_labels(node).items() if name != "job"}
    return {"targets": [address], "labels": {"__metrics_path__": f"/metrics/{node.name}", **labels}}


def configuration(exporter_port: int, *, scrape_s: int = SCRAPE_S) -> str:
    """JSON is YAML."""
    jobs = [
        {
            "job_name": job,
            "honor_labels": honours,
            "http_sd_configs": [
                {"url": f"http://127.0.0.1:{exporter_port}/targets/{vendor}", "refresh_interval": "5s"}
            ],
        }
        for vendor, (job, _, _, _, honours) in EXPORTERS.items()
    ]
    times = dict.fromkeys(("scrape_interval", "evaluation_interval"), f"{scrape_s}s")
    times["scrape_timeout"] = f"{min(scrape_s, 10)}s"
    return json.dumps({"global": times, "rule_files": [str(RULES)], "scrape_configs": jobs}, indent=1)


def exporter_command(kubeconfig: str | Path, directory: Path, port: int) -> Command:
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    argv = [sys.executable, "-m", "devcluster.monitoring", "--kubeconfig", kubeconfig, "--port", port]
    argv += ["--assigned", assigned_of(directory)]
    return Command("gpu-exporters", argv, cwd=ROOT, ready=lambda: _is_ok(port, "/targets/nvidia"))


def command(programs: Programs, directory: Path, port: int, *, exporter_port: int, scrape_s: int = SCRAPE_S) -> Command:
    """Writes the configuration; the samples are in `directory` too."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = directory / "prometheus.yml"
    file.write_text(configuration(exporter_port, scrape_s=scrape_s))
    argv = [programs["prometheus"], f"--config.file={file}", f"--storage.tsdb.path={data_of(directory)}"]
    argv += [f"--storage.tsdb.retention.time={RETENTION}", f"--web.listen-address=127.0.0.1:{port}"]
    argv += ["--log.level=warn"]
    return Command("prometheus", argv, env=_environment(), cwd=directory, ready=lambda: _is_ok(port, "/-/ready"))


def import_past(supervisor: Supervisor, programs: Programs, directory: Path, text: Path) -> None:
    """Adds OpenMetrics text to the samples. Prometheus must not run: it takes what its own log has from after the last
    sample of the text.
    """
    argv = [programs["promtool"], "tsdb", "create-blocks-from", "openmetrics", "--quiet", text, data_of(directory)]
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    ran = supervisor.run(Command("prometheus-past", argv, env=_environment(), cwd=directory), within_s=IMPORT_WITHIN_S)
    if ran.process.returncode:
        raise UserError(
            f"{ran.command.name}: promtool did not import the samples. Its last lines:\n{ran.last_lines()}",
            f"Full log: {ran.log}. Start the demo again with --fresh.",
        )


def data_of(directory: Path) -> Path:
    return directory / "data"


def assigned_of(directory: Path) -> Path:
    return directory / "assigned.json"


def _environment() -> Mapping[str, str]:
    """None of the caller's: proxies and Go's settings would change how it runs."""
    return {"GOMAXPROCS": "2"}


def _is_ok(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except http.client.HTTPException:
        return False
    finally:
        connection.close()
