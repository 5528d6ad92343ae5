"""No process is left behind, and a process that fails to start reports the reason."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster.processes.console import UserError
from devcluster.processes.ports import free_port, is_free
from devcluster.processes.supervisor import Command, Supervisor
from tests.support.waiting import wait_until

# A child that starts a grandchild of its own, both deaf to SIGTERM.
DEAF_FAMILY = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
deaf = "import signal; signal.signal(15, signal.SIG_IGN); signal.pause()"
grandchild = subprocess.Popen([sys.executable, "-c", deaf])
print(grandchild.pid, flush=True)
signal.pause()
"""
# A supervisor in a process of its own, so that a test can kill it.
SUPERVISOR = """
import json, signal, sys
from pathlib import Path
from typing import Any
from devcluster.processes.supervisor import Command, Supervisor, interrupt_on_signals
from tests.support.waiting import wait_until
interrupt_on_signals()
family = sys.argv[2]
with Supervisor(Path(sys.argv[1])) as supervisor:
    running = supervisor.start(Command("family", [sys.executable, "-c", family], stop_within_s=0.5))
    wait_until(running.log.read_text)
    print(json.dumps([running.pid, int(running.log.read_text())]), flush=True)
    signal.pause()
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    with Supervisor(tmp_path / "log") as supervisor:
        yield supervisor


def python(name: str, text: str, **fields: Any) -> Command:
    return Command(name, [sys.executable, "-c", text], **fields)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_however_the_supervisor_goes_children_and_grandchildren_go_too(tmp_path: Path, number: signal.Signals) -> None:
    started = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, str(tmp_path), DEAF_FAMILY],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert started.stdout is not None
    child, grandchild = json.loads(started.stdout.readline())
    assert alive(child)
    assert alive(grandchild)

    started.send_signal(number)
    started.wait(timeout=10)
    started.stdout.close()

    wait_until(lambda: not alive(child) and not alive(grandchild))


def test_children_stop_in_reverse_order_and_a_deaf_one_is_killed(tmp_path: Path) -> None:
    order = tmp_path / "order"
    polite = "import signal, sys\ndef end(*_):\n open({!r}, 'a').write({!r})\n sys.exit()\nsignal.signal(15, end)"
    polite += "\nprint('up', flush=True)\nsignal.pause()"
    with Supervisor(tmp_path / "log") as supervisor:
        pids = []
        for name in ("a", "b"):
            running = supervisor.start(python(name, polite.format(str(order), name)))
            wait_until(running.log.read_text)
            pids.append(running.pid)
        deaf = supervisor.start(python("deaf", DEAF_FAMILY, stop_within_s=0.2))
        wait_until(deaf.log.read_text)

    assert order.read_text() == "ba"
    assert not any(alive(pid) for pid in [*pids, deaf.pid])


def test_a_group_is_asked_together_and_awaited_one_by_one(tmp_path: Path) -> None:
    """All get SIGTERM before the first is awaited: each ends only when the others got it, or it would be killed."""
    meet = (
        "import pathlib, signal, sys\nfrom tests.support.waiting import wait_until\n"
        "mine, other = map(pathlib.Path, sys.argv[1:])\n"
        "def end(*_):\n mine.touch()\n wait_until(other.exists)\n sys.exit(7)\n"
        "signal.signal(15, end)\nprint('up', flush=True)\nsignal.pause()"
    )
    one, two = tmp_path / "one", tmp_path / "two"
    with Supervisor(tmp_path / "log") as supervisor:
        started = []
        for name, mine, other in (("one", one, two), ("two", two, one)):
            argv = [sys.executable, "-c", meet, mine, other]
            started.append(supervisor.start(Command(name, argv, stops_with="pair")))
            wait_until(started[-1].log.read_text)
    assert [running.process.returncode for running in started] == [7, 7]


def test_a_child_that_dies_at_its_start_is_reported_with_its_last_words(supervisor: Supervisor) -> None:
    supervisor.start(python("broken", "print('port 1 is privileged'); raise SystemExit(3)", ready=lambda: False))
    with pytest.raises(
        UserError, match=r"broken exited during start \(exit code 3\)[^$]*port 1 is privileged"
    ) as problem:
        supervisor.until_ready("broken")
    assert "broken.log" in problem.value.way_on


def test_a_child_that_never_gets_ready_is_reported_in_time(supervisor: Supervisor) -> None:
    supervisor.start(python("slow", "import signal; signal.pause()", ready=lambda: False, ready_within_s=0.2))
    with pytest.raises(UserError, match=r"slow was not ready within 0\.2 s"):
        supervisor.until_ready("slow")


def test_a_program_that_is_missing_is_one_sentence(supervisor: Supervisor) -> None:
    with pytest.raises(UserError, match="could not be started: No such file or directory: /no/such/program"):
        supervisor.start(Command("gone", ["/no/such/program"]))


def test_a_restart_keeps_the_log_of_the_run_before(supervisor: Supervisor) -> None:
    first = supervisor.start(python("one", "import os, signal; print(os.getpid(), flush=True); signal.pause()"))
    wait_until(first.log.read_text)
    second = supervisor.restart("one")
    wait_until(second.log.read_text)
    assert second.pid != first.pid
    assert second.log.with_suffix(".previous.log").read_text().split() == [str(first.pid)]


def test_free_ports_are_free_distinct_and_below_the_range_of_outgoing_connections() -> None:
    taken: set[int] = set()
    ports = [free_port(taken) for _ in range(50)]
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert len(set(ports)) == 50
    assert all(is_free(port) and port < lowest for port in ports)
