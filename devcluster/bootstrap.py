"""Creates the virtual environment and continues in it. It uses only the standard library, because nothing is installed
yet when it runs.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from devcluster.processes.console import UserError, note, print_error, say, step
from devcluster.processes.paths import ROOT
from devcluster.processes.supervisor import Command, Interrupted, RunningProcess, Supervisor, interrupt_on_signals

VENV = ROOT / ".venv"
STAMP = VENV / "requirements.sha256"
LOCKED = ROOT / "requirements" / "dev.txt"
PYTHON_NEEDED = (3, 11)
# Variables of the caller's environment that would change the Python of the virtual environment, so they are removed.
# With PYTHONDONTWRITEBYTECODE, each of the many processes of a demo or a test run would compile everything that it
# imports.
NOT_OURS = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")


def enter(argv: Sequence[str]) -> int:
    """Replaces this process with `python -m devcluster` in the virtual environment. Returns an exit code only if the
    virtual environment cannot be prepared.
    """
    interrupt_on_signals()
    try:
        ensure()
    except UserError as problem:
        print_error(problem)
        return 1
    except (KeyboardInterrupt, Interrupted):
        say("Stopped; the next start continues from here.")
        return 130
    python = str(VENV / "bin" / "python")
    os.chdir(ROOT)
    environment = {key: value for key, value in os.environ.items() if key not in NOT_OURS}
    return os.execve(python, [python, "-m", "devcluster", *argv], environment)


def ensure() -> None:
    """Creates or updates the virtual environment. Does nothing if its stamp is the hash of the pinned requirements and
    the Python version.
    """
    if sys.version_info < PYTHON_NEEDED:
        raise UserError(
            f"Python {'.'.join(map(str, PYTHON_NEEDED))} or newer is required; this is {sys.version.split()[0]}.",
            "Start run.py with a newer one, for example python3.11 run.py.",
        )
    wanted = _wanted()
    if _stamp() == wanted:
        return
    run = ROOT / ".run"
    run.mkdir(exist_ok=True)
    with (run / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second command waits until the first is done
        if _stamp() == wanted:
            return
        with Supervisor(run / "setup" / "log") as supervisor:
            _make(supervisor)
        STAMP.write_text(wanted)


def _make(supervisor: Supervisor) -> None:
    if not _usable():
        shutil.rmtree(VENV, ignore_errors=True)
        with step("Virtual environment created"):
            ran = supervisor.run(Command("venv", [sys.executable, "-m", "venv", VENV]), within_s=180)
            if ran.process.returncode:
                raise UserError(
                    f"Python could not create a virtual environment:\n{ran.last_lines(4)}",
                    "On Debian and Ubuntu install python3-venv, then start again.",
                )
    STAMP.unlink(missing_ok=True)
    note("Installing the pinned Python packages: about 15 s")
    with step("Python packages installed"):
        if not _install_with_uv(supervisor):
            note("uv is not available; pip takes about 1 min")
            _check(_pip(supervisor, LOCKED))


def _install_with_uv(supervisor: Supervisor) -> bool:
    """Installs the pinned packages with uv, which takes seconds where pip takes a minute. Returns False if uv cannot be
    installed or does not work on this machine.
    """
    uv = VENV / "bin" / "uv"
    if not uv.exists():
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as only_uv:
            only_uv.write(_pinned("uv"))
            only_uv.flush()
            if _pip(supervisor, Path(only_uv.name)).process.returncode:
                return False
    # By default uv trusts only its own list of certificate authorities. The list of this machine may also contain the
    # authority of a company's proxy.
    ours = {"UV_SYSTEM_CERTS": "1", "UV_PYTHON_DOWNLOADS": "never", "VIRTUAL_ENV": str(VENV)}
    environment = {**os.environ, **ours}
    argv = [uv, "pip", "install", "--quiet", "--require-hashes", "-r", LOCKED]
    return supervisor.run(Command("uv", argv, env=environment, cwd=ROOT), within_s=900).process.returncode == 0


def _pip(supervisor: Supervisor, requirements: Path) -> RunningProcess:
    argv = [VENV / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    return supervisor.run(Command("pip", [*argv, "-r", requirements], cwd=ROOT), within_s=1800)


def _check(ran: RunningProcess) -> None:
    if ran.process.returncode == 0:
        return
    text = ran.log.read_text(errors="replace")
    if re.search(r"NewConnectionError|Max retries|Temporary failure|timed out|No matching distribution", text):
        raise UserError(
            "The Python packages could not be downloaded: the package index does not answer.",
            "Check the network (pip's settings and HTTPS_PROXY are used) and start again.",
        )
    raise UserError(f"Installing the Python packages failed:\n{ran.last_lines()}", f"Full log: {ran.log}.")


def _pinned(name: str) -> str:
    """Returns the lines of one package, with its hashes, from the locked requirements."""
    found = re.search(rf"^{name}==.*?(?=^\S|\Z)", LOCKED.read_text(), re.MULTILINE | re.DOTALL)
    if found is None:
        raise UserError(f"{LOCKED} does not pin {name}.", "Run tools/lock.py.")
    return found.group()


def _usable() -> bool:
    """Returns whether the interpreter of the virtual environment exists (if Python was removed, a dangling link
    remains) and whether uv or pip is installed in it.
    """
    installer = (VENV / "bin" / "uv").exists() or any(VENV.glob("lib/python*/site-packages/pip/__main__.py"))
    return (VENV / "bin" / "python").exists() and installer


def _wanted() -> str:
    return hashlib.sha256(LOCKED.read_bytes() + sys.version.split()[0].encode()).hexdigest()


def _stamp() -> str:
    try:
        return STAMP.read_text() if (VENV / "bin" / "python").exists() else ""
    except OSError:
        return ""
