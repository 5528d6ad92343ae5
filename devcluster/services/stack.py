"""The services that the portal needs, as one object: PostgreSQL, Redis, a cluster with simulated hardware, service
accounts.

Used by all commands that start services, and by tests that need a control plane of their own:

    with Stack(Options(state=tmp_path)) as stack:
        stack.start()
        Api(stack.services["kubeconfigs"]["admin"])
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from devcluster.client import crds
from devcluster.client.kube import Api, ApiError
from devcluster.controlplane import components, hardware, identities, pki, programs
from devcluster.controlplane.components import ControlPlane
from devcluster.controlplane.external import ExternalCluster
from devcluster.controlplane.kueue import Kueue, private_root
from devcluster.controlplane.kwok import Kwok
from devcluster.controlplane.programs import Programs
from devcluster.kubelet import mig_manager
from devcluster.monitoring import prometheus
from devcluster.node import images, machine, node
from devcluster.node.node import RealNode
from devcluster.processes import lock, ports, private_files
from devcluster.processes.console import UserError, step
from devcluster.processes.paths import ROOT
from devcluster.processes.supervisor import Command, Supervisor
from devcluster.services import postgres, redis

REAL_DEVICES = 8
KUEUE_KINDS = {"Workload", "ClusterQueue", "LocalQueue", "Cohort", "ResourceFlavor", "Topology", "AdmissionCheck"}


@dataclass(frozen=True)
class Options:
    state: Path
    hardware: str = "mixed"
    unsafe: bool = True  # temporary data: no fsync
    notebooks: bool = True
    notebooks_at_once: int = 6
    monitoring: bool = False  # GPU metrics of the simulated nodes in Prometheus; needs its programs
    mig_manager: bool = False  # simulated nodes react to nvidia.com/mig.config
    real_node: bool = False  # beside the simulated nodes; needs root
    deployed: bool = False  # the portal itself in containers of the real node
    composed: bool = False  # the portal itself in containers of docker-compose.yml
    fresh: bool = False  # first delete the data of an earlier run
    # existing services instead of embedded ones
    kubeconfig: Path | None = None
    database_url: str = field(default_factory=lambda: os.environ.get("DATABASE_URL", ""))
    redis_url: str = field(default_factory=lambda: os.environ.get("REDIS_URL", ""))


class Stack:
    def __init__(self, options: Options) -> None:
        if options.hardware not in hardware.names():
            known = ", ".join(hardware.names())
            raise UserError(f"Unknown simulated hardware {options.hardware}.", f"Simulated hardware: {known}.")
        self.options = options
        self.state = options.state.resolve()
        self._lock = lock.lock_state(self.state)
        if options.fresh:
            _forget(self.state)
        self.log_dir = self.state / "log"
        self.supervisor = Supervisor(self.log_dir, hold=[self._lock.fileno()])
        self.ports = ports.assign_ports(self.state)
        self.services: dict[str, Any] = {}
        self._programs: Programs | None = None
        self.real_node: RealNode | None = None
        # Writes the logs of containers that are not processes of the supervisor, and returns their last lines.
        self.container_logs: Callable[[], str] = str

    def __enter__(self) -> Stack:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.supervisor.stop_all()
        if self.real_node is not None:
            self.real_node.clean()
        if self.options.unsafe:
            postgres.forget(self.state)
        (self.state / "services.json").unlink(missing_ok=True)
        self._lock.close()

    @property
    def programs(self) -> Programs:
        if self._programs is None:
            self._programs = programs.find_or_build(self.supervisor)
        return self._programs

    @property
    def admin(self) -> Api:
        return Api(self.services["kubeconfigs"]["admin"], timeout_s=30)

    def start(self, *, meanwhile: Callable[[], None] | None = None) -> dict[str, Any]:
        """Starts all services, and returns the content of services.json. `meanwhile` is called when PostgreSQL and
        Redis are ready: what it starts runs in parallel to the start of the cluster, which mostly waits.
        """
        self.start_stores()
        self.services |= {"log_dir": str(self.log_dir), "bin_dir": str(self.programs.bin), "notebooks": False}
        if meanwhile is not None:
            meanwhile()
        if self.options.kubeconfig is not None:
            cluster = self._use_existing(self.options.kubeconfig)
        else:
            cluster = self._start_cluster()
        with step("Service accounts of worker, watcher and doors, from deploy/"):
            identities.install(self.admin)
            if self.real_node is not None:
                offer = {"data": {"storage-classes": node.STORAGE_CLASSES}}
                self.admin.patch("v1/configmaps", "site", offer, namespace=identities.NAMESPACE)
            written = identities.write_kubeconfigs(self.admin, cluster, self.state / "kubeconfig")
            self.services["kubeconfigs"] |= {name: str(path) for name, path in written.items()}
            identities.await_rights(written)
        if self.options.notebooks and self.options.kubeconfig is None:
            self._start_notebooks()
        if self.options.monitoring and self.options.kubeconfig is None:
            self._start_monitoring()
        if self.options.mig_manager and self.options.kubeconfig is None:
            mig_manager.install_layout_file(self.admin)
            self.services["mig_layouts"] = "/".join(mig_manager.LAYOUT_FILE)
            argv = [sys.executable, "-m", "devcluster.kubelet.mig_manager"]
            argv += [
                "--kubeconfig",
                self.services["kubeconfigs"]["admin"],
                "--config-map",
                self.services["mig_layouts"],
            ]
            self._run(Command("mig-manager", argv, cwd=ROOT))
        self.write()
        return self.services

    def _start_mig_manager(self) -> None:
        mig_manager.install_layout_file(self.admin)
        self.services["mig_layouts"] = place = "/".join(mig_manager.LAYOUT_FILE)
        argv = [sys.executable, "-m", "devcluster.kubelet.mig_manager", "--config-map", place, "--kubeconfig"]
        self._run(Command("mig-manager", [*argv, self.services["kubeconfigs"]["admin"]], cwd=ROOT))

    def write(self) -> None:
        self.services["pids"] = {**self.supervisor.pids(), "supervisor": os.getpid()}
        private_files.write_private(self.state / "services.json", json.dumps(self.services, indent=1))

    def start_stores(self) -> dict[str, Any]:
        """Starts only PostgreSQL and Redis. Returns their URLs and the state directory."""
        _ = self.programs
        with step("PostgreSQL and Redis are ready"):
            database_url, redis_url = self._start_stores()
        self.services = {"database_url": database_url, "redis_url": redis_url, "state_dir": str(self.state)}
        return self.services

    def _start_stores(self) -> tuple[str, str]:
        options, started = self.options, []
        database_url, redis_url = options.database_url, options.redis_url
        if not redis_url:
            command, redis_url = redis.command(self.state, self.ports["redis"])
            started.append(self.supervisor.start(command).command.name)
        if not database_url:
            prefix, binaries, data = postgres.prepare(self.supervisor, self.state)
            command = postgres.command(
                prefix, binaries, data, state=self.state, port=self.ports["postgres"], unsafe=options.unsafe
            )
            started.append(self.supervisor.start(command).command.name)
            database_url = postgres.url(self.state, self.ports["postgres"])
        if started:
            self.supervisor.until_ready(*started)
        return database_url, redis_url

    def _start_cluster(self) -> dict[str, object]:
        private_root()  # raises an error now, not after ten seconds, if this machine does not allow it
        if self.options.real_node:
            machine.check()
        plane = ControlPlane(
            self.programs, pki.make(self.state / "pki"), self.state, self.ports, unsafe=self.options.unsafe
        )
        plane.write_kubeconfigs(node.USERS if self.options.real_node else {})
        kwok, kueue = Kwok(plane), Kueue(plane)
        self.services["kubeconfigs"] = {"admin": str(plane.kubeconfig("admin"))}
        self.services |= {"api_server_url": plane.url, "kubelet_url": kwok.kubelet_url}
        with step("API server, controllers and scheduler are ready"):
            self._run(plane.etcd())
            self._run(plane.apiserver())
            until("The API server", lambda: components.has_default_roles(self.admin), within_s=30)
            components.forget_leases(self.admin)
            both = plane.controller_manager(), plane.scheduler()
            for command in both:
                self.supervisor.start(command)
        api = self.admin
        kwok.install(api)
        self.supervisor.start(kwok.command())
        kueue.install(api)
        until("Kueue's definitions", lambda: crds.served(api, "kueue.x-k8s.io/v1beta2", KUEUE_KINDS), within_s=30)
        with step("Kueue is ready"):
            self._run(kueue.command())
            kueue.install_webhooks(api)
            until("Kueue's queue positions", lambda: kueue.serving(api), within_s=30)
        self.supervisor.until_ready(*(command.name for command in both), "kwok")
        with step(f"Simulated hardware: {self.options.hardware}"):
            hardware.load(api, self.options.hardware)
            until("The simulated nodes", lambda: not hardware.unready(api), within_s=60)
        if self.options.real_node:
            self._start_real_node(plane)
        return {"server": plane.url, "certificate-authority-data": plane.pki.ca_bundle}

    def _start_real_node(self, plane: ControlPlane) -> None:
        archive = images.find_or_build(self.supervisor)
        found = self.real_node = RealNode(plane, programs.find_or_build(self.supervisor, programs.NODE))
        api = self.admin
        with step("Real node: containerd, kubelet, kube-proxy and a device plugin"):
            found.start(self.supervisor, api, devices=REAL_DEVICES)
            until("The real node", lambda: found.is_ready(api), within_s=60)
        with step("Images of the real node"):
            found.load_images(self.supervisor, archive)
        self.services["real_node"] = {"folder": str(found.folder), "address": found.namespaces.machine_address}

    def _use_existing(self, kubeconfig: Path) -> dict[str, object]:
        existing = ExternalCluster(kubeconfig)
        existing.check()
        self.services["kubeconfigs"] = {"admin": str(kubeconfig.resolve())}
        self.services |= {"api_server_url": existing.url, "kubelet_url": ""}
        return existing.cluster

    def _start_notebooks(self) -> None:
        """Starts the notebook runner, which also simulates storage. It is a separate process, so that it can be
        restarted alone.
        """
        argv = [sys.executable, "-m", "devcluster.notebooks", "--kubeconfig", self.services["kubeconfigs"]["admin"]]
        argv += ["--data-dir", str(self.state / "notebooks"), "--log-dir", str(self.log_dir / "notebooks")]
        argv += ["--limit", str(self.options.notebooks_at_once)]
        with step("Notebook runner started"):
            self._run(Command("notebooks", argv, cwd=ROOT, stop_within_s=15))
        self.services["notebooks"] = True

    def _start_monitoring(self) -> None:
        exporters, port = self.ports["exporters"], self.ports["prometheus"]
        found = programs.find_or_build(self.supervisor, programs.MONITORING)
        kubeconfig = self.services["kubeconfigs"]["admin"]
        with step("Prometheus and the exporters of the simulated GPUs are ready"):
            self.supervisor.start(prometheus.exporter_command(kubeconfig, self.prometheus_dir, exporters))
            self._run(prometheus.command(found, self.prometheus_dir, port, exporter_port=exporters))
            self.supervisor.until_ready("gpu-exporters")
        self.services["prometheus_url"] = f"http://127.0.0.1:{port}"

    @property
    def prometheus_dir(self) -> Path:
        return self.state / "prometheus"

    def _run(self, command: Command) -> None:
        self.supervisor.start(command)
        self.supervisor.until_ready(command.name)


def _forget(state: Path) -> None:
    postgres.forget(state)
    for path in state.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in ("lock", "ports.json"):
            path.unlink()


def until(what: str, true: Callable[[], bool], *, within_s: float) -> None:
    deadline = time.monotonic() + within_s
    last: Exception | None = None
    while time.monotonic() < deadline:
        try:
            if true():
                return
        except (ApiError, OSError) as error:
            last = error
        time.sleep(0.05)
    raise UserError(
        f"{what} did not become ready within {within_s:.0f} s{f': {last}' if last else ''}.",
        "The logs are in the log folder of the state directory. On a busy machine, try again.",
    )
