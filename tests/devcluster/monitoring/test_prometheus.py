"""A real Prometheus scrapes the exporters of the test cluster's nodes, applies the shipped rules, and takes in samples
of the past.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.controlplane import hardware, programs
from devcluster.controlplane.programs import Programs
from devcluster.monitoring import prometheus
from devcluster.monitoring.past import past_lines
from devcluster.processes.console import UserError
from devcluster.processes.ports import free_port
from devcluster.processes.supervisor import Supervisor
from tests.devcluster.monitoring.simulated import AT, pod
from tests.devcluster.notebooks.pods import notebook, script
from tests.support.waiting import wait_until

ACTIVE, USED = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_FB_USED"


class Asked:
    """A running Prometheus."""

    def __init__(self, supervisor: Supervisor, port: int) -> None:
        self.supervisor = supervisor
        self.url = f"http://127.0.0.1:{port}"

    def __call__(self, query: str, *, at: float | None = None) -> dict[str, tuple[dict[str, str], float]]:
        """Labels and value of each series, by pod."""
        return {
            one["metric"].get("exported_pod") or one["metric"].get("pod", ""): (one["metric"], float(one["value"][1]))
            for one in self.series(query, at=at)
        }

    def series(self, query: str, *, at: float | None = None) -> list[dict[str, Any]]:
        parameters = {"query": query, **({"time": str(at)} if at else {})}
        with urlopen(f"{self.url}/api/v1/query?{urlencode(parameters)}", timeout=10) as answer:
            return list(json.load(answer)["data"]["result"])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    with Supervisor(tmp_path_factory.mktemp("build")) as supervisor:
        return programs.find_or_build(supervisor, programs.MONITORING)


@pytest.fixture(scope="module")
def ask(services: Json, built: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    directory = tmp_path_factory.mktemp("prometheus")
    taken: set[int] = set()
    exporters, port = free_port(taken), free_port(taken)
    with Supervisor(directory / "log") as supervisor:
        supervisor.start(prometheus.exporter_command(services["kubeconfigs"]["admin"], directory, exporters))
        supervisor.start(prometheus.command(built, directory, port, exporter_port=exporters, scrape_s=1))
        supervisor.until_ready()
        yield Asked(supervisor, port)


@pytest.fixture
def node(admin: Api, unique: str) -> Iterator[str]:
    """Two whole cards that no other test uses."""
    name = f"watched-{unique}"
    labels = {"nvidia.com/gpu.product": name, "nvidia.com/gpu.count": "2"}
    taints = [{"key": "watched", "value": unique, "effect": "NoSchedule"}]
    hardware.add(admin, hardware.node(name, devices={"nvidia.com/gpu": 2}, labels=labels, taints=taints))
    wait_until(lambda: any(c["type"] == "Ready" and c["status"] == "True"
                           for c in admin.get("v1/nodes", name)["status"].get("conditions", ())))  # fmt: skip
    yield name
    admin.delete("v1/nodes", name)


def run_pod(admin: Api, namespace: str, node: str, pod: Json) -> None:
    """Bound by its own request, so that no queue and no scheduler delay it."""
    pod["spec"] |= {"nodeName": node, "tolerations": [{"operator": "Exists"}]}
    pod["spec"]["containers"][0] |= {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    name = admin.create(pod)["metadata"]["name"]
    wait_until(lambda: admin.get("v1/pods", name, namespace=namespace)["status"].get("phase") == "Running")


def test_a_pods_series_have_the_labels_of_a_service_monitor(ask: Asked, admin: Api, namespace: str, node: str) -> None:
    container = {"name": "main", "image": "example/train:1"}
    metadata = {"name": "train", "namespace": namespace}
    train = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    run_pod(admin, namespace, node, train)
    found = wait_until(lambda: ask(f'{ACTIVE}{{node="{node}",exported_namespace="{namespace}"}}'))
    labels, value = found["train"]
    assert value >= 0.85
    own = {"exported_namespace": namespace, "exported_pod": "train", "exported_container": "main", "gpu": "0"}
    target = {"namespace": "gpu-operator", "container": "nvidia-dcgm-exporter", "node": node, "Hostname": node}
    assert labels.items() >= {**own, **target}.items()
    assert labels["pod"].startswith("nvidia-dcgm-exporter-")
    [(free, _)] = ask(f'{ACTIVE}{{node="{node}",exported_pod=""}}').values()
    assert free["gpu"] == "1"

    admin.delete("v1/pods", "train", namespace=namespace, grace_s=0)
    wait_until(lambda: not ask(f'{ACTIVE}{{node="{node}",exported_pod="train"}}'))


def test_amds_labels_are_honoured_as_its_service_monitor_does(ask: Asked) -> None:
    found = wait_until(lambda: ask('gpu_gfx_activity{node="mi300x",gpu_id="7"}'))
    [(labels, _)] = found.values()
    assert (labels["hostname"], labels["job"]) == ("mi300x", "amd-device-metrics-exporter")
    assert not any(name.startswith("exported_") for name in labels)


def test_a_notebooks_series_follow_its_process(
    ask: Asked, admin: Api, namespace: str, node: str, tmp_path: Path
) -> None:
    """The runner of the test cluster runs the script as a local process."""
    enough = tmp_path / "enough"
    run_pod(admin, namespace, node, notebook(namespace, **script(f"while [ ! -e {enough} ]; do :; done; sleep 600")))
    series = f'{ACTIVE}{{node="{node}",exported_pod="lab"}}'
    wait_until(lambda: ask(series).get("lab", ({}, 0.0))[1] > 0.1, what="the GPU is busy while the process computes")
    enough.touch()
    wait_until(lambda: ask(series)["lab"][1] <= 0.02, what="it is idle when the process waits")
    assert ask(f'{USED}{{node="{node}",exported_pod="lab"}}')["lab"][1] > 1000, "MiB that an idle kernel keeps"


def test_faults_and_silence_on_request(ask: Asked, admin: Api, node: str) -> None:
    def annotate(**annotations: str | None) -> None:
        told = {f"devcluster/{name.replace('_', '-')}": text for name, text in annotations.items()}
        admin.patch("v1/nodes", node, {"metadata": {"annotations": told}})

    def values(query: str) -> list[float]:
        return [value for _, value in ask(query).values()]

    def alerts() -> set[str]:
        found = ask.series(f'ALERTS{{alertstate="firing",hostname="{node}"}}')
        return {one["metric"]["alertname"] for one in found}

    # A shipped alert is about a change, so that there has to be a recorded value before it.
    wait_until(lambda: values(f'gpu:xid_code:max{{hostname="{node}"}} == 0'))
    annotate(gpu_fault="1=xid:79")
    wait_until(lambda: values(f'DCGM_FI_DEV_XID_ERRORS{{node="{node}",gpu="1"}}') == [79])
    wait_until(lambda: alerts() == {"GpuXidHardware"})
    annotate(gpu_fault=None)
    wait_until(lambda: alerts() == set())
    annotate(gpu_exporter="silent")
    wait_until(lambda: values(f'up{{node="{node}"}}') == [0])
    wait_until(lambda: not ask(f'{ACTIVE}{{node="{node}"}}'))
    annotate(gpu_exporter=None)
    wait_until(lambda: values(f'up{{node="{node}"}}') == [1])


def test_the_past_has_the_same_series_and_is_there_before_the_start(
    built: Programs, services: Json, tmp_path: Path
) -> None:
    nodes = [one for one in hardware.read("mixed").nodes if one["metadata"]["name"] in ("a100-1", "mi300x")]
    pods = [
        pod("idle", annotations={"devcluster/gpu-profile": "idle"}),
        pod("busy"),
        pod("amd", "amd.com/gpu", node="mi300x"),
    ]
    ends_at = float(int(time.time()))
    text = tmp_path / "past.txt"
    text.write_text("\n".join(past_lines(nodes, pods, {}, starts_at=ends_at - 3 * 3600, ends_at=ends_at)) + "\n")
    taken: set[int] = set()
    exporters, port = free_port(taken), free_port(taken)
    with Supervisor(tmp_path / "log") as supervisor:
        prometheus.import_past(supervisor, built, tmp_path / "data", text)
        supervisor.start(prometheus.exporter_command(services["kubeconfigs"]["admin"], tmp_path / "data", exporters))
        supervisor.start(prometheus.command(built, tmp_path / "data", port, exporter_port=exporters, scrape_s=1))
        supervisor.until_ready()
        ask = Asked(supervisor, port)
        counted = ask(f'count_over_time({ACTIVE}{{exported_pod!=""}}[4h])', at=ends_at)
        assert {name: count for name, (_, count) in counted.items()} == {"idle": 720, "busy": 720}
        means = ask(f'avg_over_time({ACTIVE}{{exported_pod!=""}}[3h])', at=ends_at)
        assert means["idle"][1] < 0.05 < 0.85 < means["busy"][1]
        assert ask('gpu_gfx_activity{namespace="team-a"}', at=ends_at - 3600)["amd"][1] >= 85

        # A free card has one series, which goes on.
        free = f'{ACTIVE}{{node="a100-1",gpu="3",exported_pod=""}}'
        wait_until(lambda: [float(one["value"][1]) > ends_at for one in ask.series(f"timestamp({free})")] == [True])
        assert len(ask.series(f"last_over_time({free}[4h])")) == 1


def test_a_past_without_end_is_refused(built: Programs, tmp_path: Path) -> None:
    text = tmp_path / "past.txt"
    text.write_text(f"{ACTIVE} 1 {AT}\n")
    with Supervisor(tmp_path / "log") as supervisor, pytest.raises(UserError, match="prometheus-past"):
        prometheus.import_past(supervisor, built, tmp_path / "data", text)
