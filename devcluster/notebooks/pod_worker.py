"""Handles one notebook pod on this machine, from its binding to its removal, in one thread."""

from __future__ import annotations

import http.client
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from devcluster.client.kube import ApiError
from devcluster.client.types import Json
from devcluster.kubelet import pod_status
from devcluster.notebooks import container_inputs
from devcluster.notebooks.container import Container, search_path
from devcluster.notebooks.machine import RETRY_S, Machine, clean_up, free_address, retry_until
from devcluster.notebooks.probes import readiness

POLL_S = 0.25
FIRST_S = 0.5  # longest pause between probes while not ready
# Images whose names begin with this cannot be pulled: for demonstrations and tests of a wrong image.
MISSING = "missing/"
# The end of a log that is reported as the termination message of a failure, as for a kubelet.
LAST_LINES = 80
LAST_LETTERS = 2048
PULL_BACKOFF_S = (2.0, 5.0, 10.0, 20.0, 40.0)


@dataclass(frozen=True)
class PodStart:
    """What the containers of a pod start with. `inputs`: by container name."""

    inputs: dict[str, container_inputs.ContainerInputs]
    home: Path
    address: str


class PodGone(Exception):
    """The pod no longer exists, or another pod has its name."""


class PodWorker:
    def __init__(self, machine: Machine, pod: Json) -> None:
        self.name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        self.thread = threading.Thread(target=self.run, name=self.name, daemon=True)
        self.machine = machine
        self.pod = pod  # its latest version; replaced, never modified
        self.stopping = threading.Event()  # the pod must end within its grace period
        self.gone = threading.Event()  # end at once and report nothing: the pod no longer exists, or the runner ends
        self.wake = threading.Event()  # set with one of the two events, or when the process ends
        self.started_at = ""
        self.before: dict[str, Json] = {}  # states of init containers by name
        self._told: Json | None = None
        self._lock = threading.Lock()
        self._over = False

    def see(self, pod: Json) -> bool:
        """Stores a new version of the pod. Returns False if this worker has ended; the caller must then handle the
        pod.
        """
        with self._lock:
            if not self._over:
                self.pod = pod
                if "deletionTimestamp" in pod["metadata"]:
                    self.stopping.set()
                    self.wake.set()
            return not self._over

    def abandon(self) -> None:
        self.gone.set()
        self.stopping.set()
        self.wake.set()

    def run(self) -> None:
        try:
            self._live()
        except PodGone:
            pass
        finally:
            self.machine.slots.leave(self.pod["metadata"]["uid"])
            with self._lock:
                self._over = True
            if self.gone.is_set() or "deletionTimestamp" in self.pod["metadata"]:
                retry_until(lambda: clean_up(self.machine, self.pod), say=self._say, until=self.gone)

    def _live(self) -> None:
        if self.pod["spec"]["containers"][0].get("image", "").startswith(MISSING):
            return self._fail_to_pull()
        if not (self._await_turn() and (start := self._await_inputs())):
            return self._end_before_start()
        self._publish_log()
        self._event("Pulled", f'Container image "{self._image()}" already present on machine')
        for spec in self.pod["spec"].get("initContainers", ()):
            if not self._run_before(spec, start):
                return None
        if self.stopping.is_set():
            return self._end_before_start()
        ready = start.inputs[self._name()]
        if (missing := self._missing_program(ready)) is not None:
            return self._end(128, reason="StartError", message=missing)
        container = self._container(self._name(), start)
        try:
            self._event("Created", f"Created container: {self._name()}")
            self._event("Started", f"Started container {self._name()}")
            code = self._run_until_end(container, start.address)
        finally:
            container.end()
        return self._end(code, message=self._last_words(self._main(), code), address=start.address)

    # before the main container runs

    def _fail_to_pull(self) -> None:
        """Reports ErrImagePull and ImagePullBackOff in turn, at growing intervals, until the pod is deleted."""
        image = self._image()
        error = pod_status.pull_error(image)
        attempt = 0
        while not self.stopping.is_set():
            self._event("Pulling", f'Pulling image "{image}"')
            self._event("Failed", f'Failed to pull image "{image}": {error}', kind="Warning")
            self._event("Failed", "Error: ErrImagePull", kind="Warning")
            self._tell(pod_status.waiting("ErrImagePull", error))
            self.stopping.wait(2.0)
            self._event("BackOff", f'Back-off pulling image "{image}"')
            self._event("Failed", "Error: ImagePullBackOff", kind="Warning")
            text = f'Back-off pulling image "{image}": ErrImagePull: {error}'
            self._tell(pod_status.waiting("ImagePullBackOff", text))
            self.stopping.wait(PULL_BACKOFF_S[min(attempt, len(PULL_BACKOFF_S) - 1)])
            attempt += 1
        self._end_before_start()

    def _await_turn(self) -> bool:
        slots, uid = self.machine.slots, self.pod["metadata"]["uid"]
        slots.enter(uid)
        while place := slots.place(uid):
            text = f"This machine runs at most {slots.limit} notebooks at a time; this one is number {place} in line."
            self._tell(pod_status.waiting("ContainerCreating", text))
            if self.stopping.wait(POLL_S):
                return False
        return not self.stopping.is_set()

    def _await_inputs(self) -> PodStart | None:
        address = free_address(readiness(self._main()).port)
        containers = [*self.pod["spec"].get("initContainers", ()), self._main()]
        self._tell(pod_status.waiting("ContainerCreating"))
        said = ""
        while not self.stopping.is_set():
            try:
                mounts = container_inputs.mounts(self.machine.api, self.pod)
                found = {
                    spec["name"]: container_inputs.read(self.machine.api, self.pod, spec, pod_ip=address)
                    for spec in containers
                }
            except container_inputs.MissingReference as missing:
                shown = "" if missing.event == "FailedMount" else missing.message
                self._tell(pod_status.waiting(missing.reason, shown))
                if said != missing.message:
                    text = missing.message if missing.event == "FailedMount" else f"Error: {missing.message}"
                    self._event(missing.event, text, kind="Warning", container=missing.event != "FailedMount")
                said = missing.message
            except (OSError, http.client.HTTPException, ApiError) as error:
                self._say(f"waits for the API server: {error}")
            else:
                return PodStart(found, self._home(mounts), address)
            self.stopping.wait(RETRY_S)
        return None

    def _home(self, mounts: list[container_inputs.Mount]) -> Path:
        """Returns the home directory: that of a claim, or one that is deleted with the pod. Claims mounted below it are
        symbolic links in it.
        """
        home = self.machine.private(self.pod) / "home"
        for mount in mounts:
            directory = self.machine.volumes.directory_of(mount.claim)
            directory.mkdir(parents=True, exist_ok=True)
            if not mount.below:
                home = directory
                continue
            link = home / mount.below
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.exists():
                link.symlink_to(directory)
        return home

    def _run_before(self, spec: Json, start: PodStart) -> bool:
        """Runs one init container to its end. Returns False if it failed, because the pod then ends."""
        name = spec["name"]
        if (missing := self._missing_program(start.inputs[name])) is not None:
            self.before[name] = pod_status.terminated(128, reason="StartError", message=missing)
            return self._fail_before(128)
        container = self._container(name, start)
        try:
            self._event("Started", f"Started container {name}")
            began = pod_status.now()
            self.before[name] = pod_status.running(began)
            self._tell(pod_status.waiting("PodInitializing"), address=start.address)
            self.wake.wait()
            code = container.code()
            if code is None and self.stopping.is_set():
                code = self._stop(container)
        finally:
            container.end()
        # The event is used again for the next container.
        self.wake.clear()
        if self.stopping.is_set():
            self.wake.set()
        code = 137 if code is None else code
        self.before[name] = pod_status.terminated(code, message=self._last_words(spec, code), started_at=began)
        return code == 0 or self._fail_before(code)

    def _fail_before(self, code: int) -> bool:
        self._tell(pod_status.waiting("PodInitializing"))
        self._say(f"an init container ended with {code}")
        return False

    def _container(self, name: str, start: PodStart) -> Container:
        return Container(
            start.inputs[name],
            address=start.address,
            home=start.home,
            private=self.machine.private(self.pod),
            log=self.machine.log(self.pod, name),
            mark=self.machine.mark_of(self.pod),
            on_exit=self.wake.set,
        )

    def _missing_program(self, ready: container_inputs.ContainerInputs) -> str | None:
        if container_inputs.program(ready.argv, search_path(self.machine.data_dir)) is not None:
            return None
        return f'exec: "{ready.argv[0]}": executable file not found in $PATH'

    def _last_words(self, spec: Json, code: int) -> str:
        """Returns the end of the container's log as its termination message, if it failed and its spec requests
        this.
        """
        if code == 0 or spec.get("terminationMessagePolicy") != "FallbackToLogsOnError":
            return ""
        log = self.machine.log(self.pod, spec["name"])
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        # The text of a line comes after its time, stream and tag.
        text = "\n".join(line.split(" ", 3)[-1] for line in lines[-LAST_LINES:])
        return text[-LAST_LETTERS:]

    def _end_before_start(self) -> None:
        """Reports a pod that was deleted before its container started: Failed, as a kubelet does."""
        text = "The container could not be located when the pod was terminated"
        self._end(137, reason="ContainerStatusUnknown", message=text)

    # while the main container runs

    def _run_until_end(self, container: Container, address: str) -> int:
        self.started_at = pod_status.now()
        probe = readiness(self._main())
        next_probe, failed, ready = time.monotonic() + probe.delay_s, 0, False
        running = pod_status.running(self.started_at)
        self._tell(running, address=address)
        while (code := container.code()) is None and not self.stopping.is_set():
            if (pause := next_probe - time.monotonic()) > 0:
                self.wake.wait(pause)
                continue
            passed = probe.passes(address)
            failed = 0 if passed else failed + 1
            if passed or failed >= probe.failures:
                ready = passed
            self._tell(running, ready=ready, address=address)
            # Until the container is ready, it is probed more often than a kubelet would, so that nobody waits for a
            # full period.
            next_probe = time.monotonic() + (probe.period_s if ready else min(probe.period_s, FIRST_S))
        return code if code is not None else self._stop(container)

    def _stop(self, container: Container) -> int:
        """Sends SIGTERM, waits for the grace period of the deletion, then sends SIGKILL."""
        if self.gone.is_set():
            raise PodGone
        self._event("Killing", f"Stopping container {self._name()}")
        container.ask_to_end()
        default = self.pod["spec"].get("terminationGracePeriodSeconds", 30)
        deadline = time.monotonic() + self.pod["metadata"].get("deletionGracePeriodSeconds", default)
        while time.monotonic() < deadline and not self.gone.is_set():
            if container.exited.wait(POLL_S):
                break
        else:
            container.kill()
            container.exited.wait(10)
        code = container.code()
        return 137 if code is None else code

    def _end(self, code: int, *, reason: str = "", message: str = "", address: str = "") -> None:
        state = pod_status.terminated(code, reason=reason, message=message, started_at=self.started_at)
        self._tell(state, address=address)
        self._say(f"ended with {code}")

    # reports

    def _tell(self, state: Json, *, ready: bool = False, address: str = "") -> None:
        """Reports a status if it differs from the last report. Retries until the API server accepts it. Raises
        PodGone.
        """
        told = {
            "state": {k: v for k, v in state.items() if k != "terminated"},
            "ready": ready,
            "ended": "terminated" in state,
            "before": dict(self.before),
        }
        if told == self._told:
            return
        try:
            retry_until(lambda: self._report(state, ready=ready, address=address), say=self._say, until=self.gone)
        except ApiError as error:
            if error.status in (404, 409):
                raise PodGone from error
            raise
        if self.gone.is_set():
            raise PodGone
        self._told = told

    def _report(self, state: Json, *, ready: bool, address: str) -> None:
        status = pod_status.status(self.pod, state, ready=ready, pod_ip=address, init=self._states_before(state))
        pod_status.report(self.machine.api, self.pod, status)

    def _states_before(self, state: Json) -> dict[str, Json] | None:
        """Returns the states of the init containers, or None before the first one has started: `pod_status.status` then
        derives them.
        """
        names = [spec["name"] for spec in self.pod["spec"].get("initContainers", ())]
        if not self.before and "waiting" in state:
            return None
        return {name: self.before.get(name) or pod_status.waiting("PodInitializing") for name in names}

    def _event(self, reason: str, message: str, *, kind: str = "Normal", container: bool = True) -> None:
        try:
            pod_status.event(self.machine.api, self.pod, reason, message, kind=kind, container=container)
        except (OSError, http.client.HTTPException, ApiError) as error:
            self._say(f"an event was lost: {error}")  # events are best effort for a kubelet too

    def _publish_log(self) -> None:
        """Tells kwok, which is the kubelet endpoint of the node, which files are the logs of the pod. The Logs object
        is deleted together with the pod.
        """
        meta = self.pod["metadata"]
        of_containers = []
        for name in [*(spec["name"] for spec in self.pod["spec"].get("initContainers", ())), self._name()]:
            log = self.machine.log(self.pod, name)
            log.touch()
            of_containers.append({"containers": [name], "logsFile": str(log), "follow": True})
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        spec = {"logs": of_containers}
        names = {"name": meta["name"], "namespace": meta["namespace"], "ownerReferences": [owner]}
        logs = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Logs", "metadata": names, "spec": spec}
        try:
            retry_until(lambda: self.machine.api.apply(logs), say=self._say, until=self.gone)
        except (ApiError, LookupError) as error:  # no kwok CRDs, or the namespace is being deleted
            self._say(f"kubectl logs will not work: {error}")

    def _main(self) -> Json:
        main: Json = self.pod["spec"]["containers"][0]
        return main

    def _image(self) -> str:
        return str(self._main().get("image", ""))

    def _name(self) -> str:
        return str(self._main()["name"])

    def _say(self, text: str) -> None:
        print(f"{pod_status.now()} {self.name}: {text}", flush=True)
