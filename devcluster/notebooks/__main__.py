"""Follows notebook pods and starts a PodWorker for each. Reports the pods that an earlier runner left as failed."""

from __future__ import annotations

import argparse
import signal
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

from devcluster.client.annotations import SCRIPTED, SIMULATED
from devcluster.client.kube import Api, ApiError
from devcluster.client.list_watch import ListWatch
from devcluster.client.types import Json
from devcluster.kubelet import pod_status
from devcluster.notebooks.container import kill_marked, write_stand_ins
from devcluster.notebooks.machine import Machine, clean_up, retry_until
from devcluster.notebooks.pod_worker import PodWorker
from devcluster.notebooks.slots import Slots
from devcluster.notebooks.volumes import Volumes

LABEL = "gpu-portal/kind=notebook"
# A pod with this annotation is handled only by the runner with that name. Runners of tests have a name; the usual
# runner has none.
RUNNER = "devcluster/runner"
TERMINAL = ("Succeeded", "Failed")


class Runner:
    def __init__(self, machine: Machine, *, name: str = "") -> None:
        self.machine = machine
        self.name = name
        self.lives: dict[str, PodWorker] = {}  # by pod uid
        self._pods = ListWatch(machine.api, "v1/pods", labels=LABEL)
        self._stopping = threading.Event()
        self._simulated: dict[str, bool] = {}  # by node name

    def run(self) -> None:
        """Handles pods until `stop`. Pod workers are threads of this process, and their child processes are killed when
        it ends.
        """
        kill_marked(f"{self.machine.data_dir}|")
        write_stand_ins(self.machine.data_dir)
        self.machine.volumes.start()
        for kind, pod in self._pods:
            try:
                retry_until(partial(self._see, kind, pod), say=_say, until=self._stopping)
            except ApiError as error:
                _say(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}: {error}")

    def stop(self) -> None:
        self._stopping.set()
        self._pods.stop()
        self.machine.volumes.stop()

    def end(self) -> None:
        """Ends all child processes, and reports nothing. The next runner reports the pods as failed, as a kubelet does
        after a reboot of its node.
        """
        for life in self.lives.values():
            life.abandon()
        for life in self.lives.values():
            life.thread.join(timeout=10)
        kill_marked(f"{self.machine.data_dir}|")

    def _see(self, kind: str, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        life = self.lives.get(uid)
        if kind == "DELETED":
            if life is not None:
                life.abandon()
                self.lives.pop(uid)
            return
        if life is not None and life.see(pod):
            return
        if self._is_ours(pod):
            self._begin_or_settle(pod, lived=life is not None)

    def _is_ours(self, pod: Json) -> bool:
        node, annotations = pod["spec"].get("nodeName", ""), pod["metadata"].get("annotations", {})
        if not node or annotations.get(SCRIPTED) == "true" or annotations.get(RUNNER, "") != self.name:
            return False
        if node not in self._simulated:
            found = self.machine.api.find("v1/nodes", node)
            if found is None:
                return False
            self._simulated[node] = found["metadata"].get("annotations", {}).get(SIMULATED) == "fake"
        return self._simulated[node]

    def _begin_or_settle(self, pod: Json, *, lived: bool) -> None:
        status = pod["status"]
        ended = status.get("phase") in TERMINAL
        if "deletionTimestamp" in pod["metadata"] and (ended or lived):
            clean_up(self.machine, pod)
        elif ended or lived:
            return
        elif any("running" in container["state"] for container in status.get("containerStatuses", ())):
            self._report_lost(pod)
        else:
            life = self.lives[pod["metadata"]["uid"]] = PodWorker(self.machine, pod)
            life.see(pod)
            life.thread.start()

    def _report_lost(self, pod: Json) -> None:
        """The pod ran under an earlier runner, and its process ended together with that runner. Reported as if the node
        had been shut down.
        """
        text = "Pod was terminated in response to imminent node shutdown."
        state = pod_status.terminated(137, started_at=pod["status"].get("startTime", ""))
        status = pod_status.status(pod, state, reason="Terminated", message=text)
        status["conditions"].append(pod_status.disruption("TerminationByKubelet", text))
        with suppress(ApiError):  # it no longer exists
            pod_status.report(self.machine.api, pod, status)
        if "deletionTimestamp" in pod["metadata"]:
            clean_up(self.machine, pod)


def _say(text: str) -> None:
    print(f"{pod_status.now()} {text}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Run notebook pods of simulated nodes as local JupyterLabs.")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--log-dir", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path, help="default: `notebooks` beside the log directory")
    parser.add_argument("--limit", type=int, default=6, help="notebooks at a time")
    parser.add_argument("--name", default="", help=f"run only pods with the annotation {RUNNER}=NAME")
    arguments = parser.parse_args()
    data_dir = (arguments.data_dir or arguments.log_dir.parent / "notebooks").resolve()
    log_dir = arguments.log_dir.resolve()
    for directory in (data_dir, log_dir):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    api = Api(arguments.kubeconfig)
    machine = Machine(api, data_dir, log_dir, Slots(arguments.limit), Volumes(api, data_dir / "claims"))
    runner = Runner(machine, name=arguments.name)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: runner.stop())
    try:
        runner.run()
    finally:
        runner.end()


if __name__ == "__main__":
    main()
