"""Starts and stops child processes so that none outlives the supervisor. Uses only the standard library.

Every child has its own session, so Ctrl-C reaches only the supervisor, which then stops the children in reverse order.
If the supervisor is killed, two mechanisms remain: the kernel signals its children (PR_SET_PDEATHSIG), and the reaper
ends their process groups. The kernel sends the parent-death signal when the *thread* that started the child ends. So
start children in a thread that lives as long as they should, usually the main thread.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO

from devcluster.processes.console import UserError, elapsed

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_STOPPING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


class Interrupted(BaseException):
    """SIGTERM or SIGHUP arrived. Raised as KeyboardInterrupt is for Ctrl-C, so that every `with` block cleans up."""


@dataclass(frozen=True)
class Command:
    name: str
    argv: Sequence[object]  # str() of each is one argument
    env: Mapping[str, str] | None = None  # all variables; None: those of the supervisor
    cwd: Path | None = None
    ready: Callable[[], bool] | None = None  # OSError counts as not ready
    ready_within_s: float = 60.0
    stop_signal: signal.Signals = signal.SIGTERM
    stop_within_s: float = 10.0
    stops_with: str = ""  # name of a group that is signalled together when all are stopped


@dataclass
class RunningProcess:
    command: Command
    process: subprocess.Popen[bytes]
    log: Path
    is_asked: bool = False  # got its stop signal; a second one makes some programs abort their work

    @property
    def pid(self) -> int:
        return self.process.pid

    def last_lines(self, count: int = 12) -> str:
        with suppress(OSError):
            return "\n".join("    " + line for line in self.log.read_text(errors="replace").splitlines()[-count:])
        return ""


class Supervisor:
    """The children by name, in the order of their start. A context manager: its exit stops all of them."""

    def __init__(self, log_dir: Path, *, hold: Sequence[int] = ()) -> None:
        self.log_dir = log_dir
        self.running: dict[str, RunningProcess] = {}
        log_dir.mkdir(parents=True, exist_ok=True)
        self._reaper = subprocess.Popen(
            [sys.executable, "-I", "-S", Path(__file__).with_name("reaper.py")],
            stdin=subprocess.PIPE,
            start_new_session=True,
            # `hold`: the lock of the state directory. The reaper keeps it until the last remaining process has ended.
            pass_fds=tuple(hold),
        )

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop_all()

    def start(self, command: Command) -> RunningProcess:
        """Starts the process and does not wait for it; see `until_ready`."""
        log = self.log_dir / f"{command.name}.log"
        if log.exists():
            log.replace(log.with_suffix(".previous.log"))
        with _uninterrupted(), log.open("wb") as output:
            process = self._spawn(command, output)
            running = self.running[command.name] = RunningProcess(command, process, log)
            self._tell(f"+ {process.pid} {int(command.stop_signal)}")
        return running

    def until_ready(self, *names: str) -> None:
        for name in names or tuple(self.running):
            self._await(self.running[name])

    def run(
        self, command: Command, *, within_s: float, every: Callable[[float, Path], None] | None = None
    ) -> RunningProcess:
        """Starts the process and waits for its end. Calls `every(elapsed seconds, log)` about once a second."""
        self.start(command)
        return self.finish(command.name, within_s=within_s, every=every)

    def finish(
        self, name: str, *, within_s: float, every: Callable[[float, Path], None] | None = None
    ) -> RunningProcess:
        """Waits until a child ends by itself. Raises UserError after `within_s`."""
        running = self.running[name]
        began = time.monotonic()
        try:
            while running.process.poll() is None:
                if time.monotonic() - began > within_s:
                    raise UserError(f"{name} did not finish within {elapsed(within_s)}.", f"Its log is {running.log}.")
                with suppress(subprocess.TimeoutExpired):
                    running.process.wait(1.0)
                if every is not None:
                    every(time.monotonic() - began, running.log)
        finally:
            self.stop(name)
        return running

    def foreground(self, command: Command) -> int:
        """Runs the process to its end in the supervisor's terminal. Returns its exit code. Ctrl-C is passed on to it as
        SIGINT.
        """
        with _uninterrupted():
            process = self._spawn(command, None)
            self.running[command.name] = RunningProcess(command, process, Path(os.devnull))
            self._tell(f"+ {process.pid} {int(command.stop_signal)}")
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)  # pytest then prints its results so far
            with suppress(subprocess.TimeoutExpired):
                process.wait(command.stop_within_s)
            raise
        finally:
            self.stop(command.name)

    def restart(self, name: str) -> RunningProcess:
        command = self.running[name].command
        self.stop(name)
        running = self.start(command)
        self._await(running)
        return running

    def stop(self, name: str) -> None:
        """Sends the stop signal, waits up to `stop_within_s`, then kills the whole process group."""
        running = self.running.get(name)
        if running is None:
            return
        process, command = running.process, running.command
        if process.poll() is None:
            self._ask(running)
            with suppress(subprocess.TimeoutExpired):
                process.wait(command.stop_within_s)
        _signal_group(process.pid, signal.SIGKILL)
        process.wait()
        self.running.pop(name, None)
        self._tell(f"- {process.pid}")

    def stop_all(self) -> None:
        """Stops all children in reverse order. A second interruption kills the remaining ones at once."""
        try:
            for name in reversed(tuple(self.running)):
                group = self.running[name].command.stops_with
                for other in [one for one in self.running.values() if group and one.command.stops_with == group]:
                    self._ask(other)
                self.stop(name)
        except (KeyboardInterrupt, Interrupted):
            for running in self.running.values():
                _signal_group(running.pid, signal.SIGKILL)
                running.process.wait()
        finally:
            if self._reaper.stdin is not None:
                with suppress(OSError):
                    self._reaper.stdin.close()
            self._reaper.wait()

    def _ask(self, running: RunningProcess) -> None:
        """Signals only the child itself, which normally ends its own children. The rest of its process group is killed
        later.
        """
        if not running.is_asked and running.process.poll() is None:
            running.is_asked = True
            running.process.send_signal(running.command.stop_signal)

    def ended(self) -> list[RunningProcess]:
        """Returns the children that exited without being stopped."""
        return [running for running in self.running.values() if running.process.poll() is not None]

    def pids(self) -> dict[str, int]:
        return {name: running.pid for name, running in self.running.items()}

    def _spawn(self, command: Command, output: IO[bytes] | None) -> subprocess.Popen[bytes]:
        def in_child(parent: int = os.getpid(), number: int = int(command.stop_signal)) -> None:
            _libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
            signal.pthread_sigmask(signal.SIG_SETMASK, set())
            if os.getppid() != parent:  # the supervisor ended between fork and prctl
                os._exit(1)

        try:
            return subprocess.Popen(
                [str(word) for word in command.argv],
                env=None if command.env is None else dict(command.env),
                cwd=command.cwd,
                stdin=None if output is None else subprocess.DEVNULL,
                stdout=output,
                stderr=None if output is None else subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=in_child,
            )
        except OSError as error:
            raise UserError(
                f"{command.name} could not be started: {error.strerror}: {command.argv[0]}.",
                "Delete the cached programs or the virtual environment it belongs to; the next start creates it again.",
            ) from error

    def _await(self, running: RunningProcess) -> None:
        command = running.command
        deadline = time.monotonic() + command.ready_within_s
        while True:
            if (code := running.process.poll()) is not None:
                raise UserError(
                    f"{command.name} exited during start (exit code {code}). Its last lines:\n{running.last_lines()}",
                    f"Full log: {running.log}.",
                )
            with suppress(OSError):
                if command.ready is None or command.ready():
                    return
            if time.monotonic() > deadline:
                raise UserError(
                    f"{command.name} was not ready within {elapsed(command.ready_within_s)}. Its last lines:\n"
                    f"{running.last_lines()}",
                    f"Full log: {running.log}. On a busy machine, try again.",
                )
            time.sleep(0.03)

    def _tell(self, line: str) -> None:
        if self._reaper.stdin is not None:
            with suppress(OSError):  # the reaper has ended; parent-death signals still work
                self._reaper.stdin.write(f"{line}\n".encode())
                self._reaper.stdin.flush()


def _signal_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Blocks interruptions from the start of the child until the reaper knows it: otherwise nobody might end the
    child.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def interrupt_on_signals() -> None:
    """SIGTERM and SIGHUP raise Interrupted. SIGINT raises KeyboardInterrupt, even if the shell started this process in
    the background with SIGINT ignored.
    """

    def leave(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, leave)
