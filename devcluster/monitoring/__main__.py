"""Serves the metrics of all simulated nodes: `/metrics/NODE`, and for Prometheus `/targets/nvidia` and `/targets/amd`.

Annotations of a node are its controls: `devcluster/gpu-fault` and `devcluster/gpu-exporter` (readings.py).
"""

from __future__ import annotations

import argparse
import json
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from devcluster.client.kube import Api
from devcluster.client.list_watch import ListWatch
from devcluster.client.types import Json
from devcluster.monitoring import amd_text, dcgm_text, prometheus
from devcluster.monitoring.assignment import Assignments, Held
from devcluster.monitoring.devices import NVIDIA, GpuNode, gpu_node
from devcluster.monitoring.exposition import text_of
from devcluster.monitoring.local_processes import ProcessorUse
from devcluster.monitoring.readings import EXPORTER, FAULTS, SILENT, CardReading, faults_of, read_card
from devcluster.processes import private_files

NODES, PODS = "v1/nodes", "v1/pods"
SLICES, CLAIMS = "resource.k8s.io/v1/resourceslices", "resource.k8s.io/v1/resourceclaims"
TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Followed:
    """The objects of a resource, by uid, as a watch keeps them."""

    def __init__(self, api: Api, resource: str) -> None:
        self.api, self.resource = api, resource
        self._objects: dict[str, Json] = {}
        self._watch = ListWatch(api, resource)
        threading.Thread(target=self._follow, daemon=True).start()

    def all(self) -> list[Json]:
        return list(self._objects.values())

    def await_list(self) -> None:
        """Waits until every object that exists now has been seen."""
        while not {obj["metadata"]["uid"] for obj in self.api.list(self.resource)} <= {*self._objects}:
            time.sleep(0.05)

    def _follow(self) -> None:
        for kind, obj in self._watch:
            uid = obj["metadata"]["uid"]
            if kind == "DELETED":
                self._objects.pop(uid, None)
            else:
                self._objects[uid] = obj


class Exporters:
    """Of all nodes. Energy counts from the start of this process, as from the start of a node. `file` keeps which pod
    has which device.
    """

    def __init__(self, api: Api, file: Path) -> None:
        self.file = file
        before: dict[str, Held] = json.loads(file.read_text()) if file.exists() else {}
        self.nodes, self.pods = Followed(api, NODES), Followed(api, PODS)
        self.slices, self.claims = Followed(api, SLICES), Followed(api, CLAIMS)
        self._use = ProcessorUse()
        self._assigned = {name: Assignments(held) for name, held in before.items()}
        self._energy_j: dict[str, float] = {}
        self._read_at: dict[str, float] = {}
        self._lock = threading.Lock()
        self._kept = ""

    def await_lists(self) -> None:
        for followed in (self.nodes, self.pods, self.slices, self.claims):
            followed.await_list()

    def gpu_nodes(self) -> list[GpuNode]:
        found = (gpu_node(node, self._slices_of(node)) for node in self.nodes.all())
        return sorted((one for one in found if one is not None), key=lambda one: one.name)

    def text(self, name: str) -> str | None:
        """Returns None for a node without an exporter, or with a silent one."""
        with self._lock:
            node = next((one for one in self.nodes.all() if one["metadata"]["name"] == name), None)
            annotations = node["metadata"].get("annotations", {}) if node else {}
            gpus = gpu_node(node, self._slices_of(node)) if node else None
            if gpus is None or annotations.get(EXPORTER) == SILENT:
                return None
            pods = [pod for pod in self.pods.all() if pod["spec"].get("nodeName") == name]
            occupants = self._assigned.setdefault(name, Assignments()).update(gpus, pods, self.claims.all())
            self._keep()
            now, cores, faults = time.time(), self._use.cores(), faults_of(annotations.get(FAULTS, ""))
            readings = [
                read_card(card, occupants, at=now, cores=cores, faults=faults.get(card.index)) for card in gpus.cards
            ]
            self._count_energy(gpus, readings, now)
            families = (dcgm_text if gpus.vendor == NVIDIA else amd_text).families
            return text_of(families(gpus, occupants, readings, self._energy_j))

    def _keep(self) -> None:
        text = json.dumps({name: one.held for name, one in self._assigned.items()})
        if text != self._kept:
            private_files.write_private(self.file, text)
            self._kept = text

    def _slices_of(self, node: Json) -> list[Json]:
        return [one for one in self.slices.all() if one["spec"].get("nodeName") == node["metadata"]["name"]]

    def _count_energy(self, node: GpuNode, readings: list[CardReading], now: float) -> None:
        for card, reading in zip(node.cards, readings, strict=True):
            seconds = now - self._read_at.get(card.uuid, now)
            self._energy_j[card.uuid] = self._energy_j.get(card.uuid, 0.0) + reading.power_w * seconds
            self._read_at[card.uuid] = now


class ExporterHandler(BaseHTTPRequestHandler):
    exporters: Exporters

    def do_GET(self) -> None:
        kind, _, name = self.path.strip("/").partition("/")
        if kind == "metrics":
            text = self.exporters.text(name)
            return self._answer(503 if text is None else 200, text or "", TEXT_TYPE)
        if kind == "targets":
            host = self.headers.get("Host", "")
            targets = [prometheus.target(one, host) for one in self.exporters.gpu_nodes() if one.vendor == name]
            return self._answer(200, json.dumps(targets), "application/json")
        return self._answer(404, "", TEXT_TYPE)

    def log_message(self, format: str, *args: object) -> None:
        """Prometheus calls every few seconds: calls are not logged."""

    def _answer(self, status: int, text: str, content_type: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve GPU metrics of the simulated nodes.")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--assigned", type=Path, required=True, help="file for which pod has which device")
    arguments = parser.parse_args()
    exporters = ExporterHandler.exporters = Exporters(Api(arguments.kubeconfig), arguments.assigned)
    exporters.await_lists()
    server = ThreadingHTTPServer(("127.0.0.1", arguments.port), ExporterHandler)
    server.daemon_threads = True
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever()


if __name__ == "__main__":
    main()
