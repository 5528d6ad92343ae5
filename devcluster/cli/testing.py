"""`run.py test`: runs the checks, then all tests on real services. With `--reuse`: no checks, and the services of
`run.py up`. Also `run.py soak`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from devcluster.cli import changed, up
from devcluster.controlplane.programs import cache_home
from devcluster.demo.environment import keep_logs
from devcluster.processes.console import UserError, note, say, step
from devcluster.processes.paths import ROOT
from devcluster.processes.supervisor import Command, Supervisor
from devcluster.services.stack import Options, Stack

# The first is the same browser engine without a user interface: it needs half the processor time for a page.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
SOAK = ROOT / "tests" / "soak"
SERVICES_VARIABLE = "PORTAL_TEST_SERVICES"
# This pytest plug-in sets the environment variables for Django's settings. pytest-django reads the settings before any
# conftest is loaded.
PLUGIN = ("-p", "tests.plugin")
BROWSER_VARIABLE = "PORTAL_TEST_BROWSER"
# Tests with a cluster mostly wait for it, so four processes keep the two cores of a small machine busy; with five, a
# run takes a minute longer. All tests of a file run in one process, with the exceptions of tests/support/scheduling.py;
# tests/conftest.py orders the files.
AT_ONCE = ("-n", "4", "--dist", "loadfile", "--no-loadscope-reorder")


def test(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    """`rest` is passed to pytest unchanged. Only a run that selects the marker `real_node` starts such a node."""
    if arguments.changed:
        rest = [*_near_tests(arguments.changed), *rest]
    browser = _browser()
    at_once = () if rest else AT_ONCE  # for a few tests, starting several processes takes longer than it saves
    pytest = [sys.executable, "-m", "pytest", *PLUGIN, *at_once, *rest, *_without_browser(browser, rest)]
    if arguments.reuse:
        services = reusable()
        with tempfile.TemporaryDirectory(prefix="gpu-portal-") as logs, Supervisor(Path(logs)) as supervisor:
            return _pytest(supervisor, pytest, services, browser)
    with tempfile.TemporaryDirectory(prefix="gpu-portal-", ignore_cleanup_errors=True) as state:
        options = Options(
            state=Path(state),
            hardware=arguments.hardware,
            kubeconfig=arguments.kubeconfig,
            real_node="real_node" in rest,
        )
        with Stack(options) as stack:
            # mypy without a cache is slow and uses one core. It runs in parallel to the start of the services, the
            # other checks and the first tests.
            stack.start(meanwhile=lambda: _begin(stack, *_mypy()))
            if at_once:
                stack.supervisor.start(_compile_tests(stack))  # runs in parallel to the checks, which use one core
            failed = _checks(stack)
            if at_once:
                stack.supervisor.finish("compile-tests", within_s=900)
            code = _pytest(stack.supervisor, pytest, stack.state / "services.json", browser)
            failed += _said(stack, "mypy")
            if code:
                say(f"The services' logs are kept in {keep_logs(stack)}")
    if failed:
        say(f"\nFailed checks (output above): {', '.join(failed)}")
        return 1
    return code


def _near_tests(base: str) -> list[str]:
    paths, texts = changed.since(ROOT, base), changed.tracked_texts(ROOT)
    chosen = changed.select(paths, texts)
    note(f"{len(paths)} files differ from {base}; {len(chosen)} related test files")
    return chosen


def reusable() -> Path:
    """Returns the path of services.json of a running `run.py up`. Raises UserError if it does not run."""
    path = up.STATE / "services.json"
    try:
        supervisor = json.loads(path.read_text())["pids"]["supervisor"]
        os.kill(supervisor, 0)
    except (OSError, ValueError, KeyError) as error:
        raise UserError("No services are running.", "Start them in another terminal: python3 run.py up") from error
    return path


def environment(services: Path) -> dict[str, str]:
    return {**os.environ, SERVICES_VARIABLE: str(services)}


def _pytest(supervisor: Supervisor, argv: list[str], services: Path, browser: str) -> int:
    env = environment(services) | ({BROWSER_VARIABLE: browser} if browser else {})
    return supervisor.foreground(Command("pytest", argv, env=env, cwd=ROOT))


def _compile_tests(stack: Stack) -> Command:
    """Collects the tests once, so that pytest stores the compiled test modules: otherwise each process takes 10 s for
    it. The result is ignored, because a test that does not compile is reported when it runs.
    """
    argv = [sys.executable, "-m", "pytest", *PLUGIN, "--collect-only", "-q"]
    return Command("compile-tests", argv, env=environment(stack.state / "services.json"), cwd=ROOT)


def _mypy() -> tuple[str, list[object]]:
    # Kept outside the checkout: mypy compares contents, so that a fresh clone is checked in 2 s instead of 20.
    return "mypy", [Path(sys.executable).parent / "mypy", f"--cache-dir={cache_home() / 'mypy'}"]


def _checks(stack: Stack) -> list[str]:
    """Returns the names of the failed checks. A failed check does not stop the others, so that one run shows all
    failures.
    """
    bin_dir = Path(sys.executable).parent
    templates = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "templates").rglob("*.html"))
    checks: list[tuple[str, list[object]]] = [
        ("ruff check", [bin_dir / "ruff", "check", "."]),
        ("ruff format", [bin_dir / "ruff", "format", "--check", "."]),
        ("import-linter", [bin_dir / "lint-imports", "--no-cache"]),
        ("djade", [bin_dir / "djade", "--check", "--target-version", "5.2", *templates]),
        ("migration drift", [sys.executable, "manage.py", "makemigrations", "--check", "--dry-run"]),
    ]
    failed = []
    for name, argv in checks:
        _begin(stack, name, argv)
        failed += _said(stack, name)
    return failed


def _begin(stack: Stack, name: str, argv: list[object]) -> None:
    env = {**os.environ, **_django(stack.services)}
    stack.supervisor.start(Command(name.replace(" ", "-"), argv, env=env, cwd=ROOT))


def _said(stack: Stack, name: str) -> list[str]:
    """Waits until the check has ended. If it failed, prints its output and returns its name in a list; otherwise
    returns [].
    """
    with step(name):
        ran = stack.supervisor.finish(name.replace(" ", "-"), within_s=900)
    if not ran.process.returncode:
        return []
    say(ran.log.read_text(errors="replace"))
    return [name]


def _django(services: dict[str, Any]) -> dict[str, str]:
    """Environment variables that are enough for checks which run management commands."""
    return {
        "SECRET_KEY": "for checks only",
        "DATABASE_URL": services["database_url"],
        "REDIS_URL": services["redis_url"],
        "DJANGO_SETTINGS_MODULE": "portal.settings",
    }


def _browser() -> str:
    found = os.environ.get(BROWSER_VARIABLE) or next(filter(None, map(shutil.which, BROWSERS)), "")
    if not found and os.environ.get("REQUIRE_BROWSER"):
        raise UserError(
            "REQUIRE_BROWSER is set and no Chromium was found.", "Install it: apt-get install chromium-headless-shell"
        )
    if not found:
        note("No Chromium found: browser tests are skipped (apt-get install chromium-headless-shell)")
    return found


def _without_browser(browser: str, rest: Sequence[str]) -> list[str]:
    return [] if browser or any(word.startswith("-m") for word in rest) else ["-m", "not browser"]


def soak_modules() -> dict[str, list[Path]]:
    """By the name that `run.py soak` takes: a module, or the modules of a folder."""
    found: dict[str, list[Path]] = {}
    for path in sorted(SOAK.rglob("*.py")):
        if path.stem != "conftest" and not path.stem.startswith("_"):
            found.setdefault(path.relative_to(SOAK).with_suffix("").parts[0], []).append(path)
    return found


def soak(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    """Runs the tests that take minutes: all of tests/soak, or the named module or folder of modules. Their file names
    do not start with `test_`, so `run.py test` does not collect them.
    """
    known = soak_modules()
    if arguments.name and arguments.name not in known:
        raise UserError(f"Unknown soak test {arguments.name}.", f"Soak tests: {', '.join(known) or 'none'}.")
    modules = [str(path) for name, those in known.items() if arguments.name in (None, name) for path in those]
    if not modules:
        raise UserError("No soak tests found.", f"They belong in {SOAK}.")
    argv = [sys.executable, "-m", "pytest", *PLUGIN, "--timeout=3600", *modules, *rest]
    with tempfile.TemporaryDirectory(prefix="gpu-portal-", ignore_cleanup_errors=True) as state:
        options = Options(state=Path(state), hardware=arguments.hardware, kubeconfig=arguments.kubeconfig)
        with Stack(options) as stack:
            stack.start()
            return _pytest(stack.supervisor, argv, stack.state / "services.json", "")
