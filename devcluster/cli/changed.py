"""`run.py test --changed [BASE]`: the tests most closely related to what changed since BASE, for fast iteration.

A test is related if it imports a changed module, or a module that imports the changed one, or if it is in the folder of
tests/ that mirrors the module's package. If no test is related in this way, all tests of the app are. Longer import
chains are ignored: they lead to almost all tests. Only the whole suite decides about a merge.

A changed template or other file is related to the Python modules that name it, or that name a template which includes
it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from devcluster.processes.console import UserError

ALWAYS = "tests/test_shape.py"
DOCUMENTS = "tests/test_docs.py"
# These modules import every app, so an import by them does not relate a test to a changed module.
COMPOSITION = {"portal/urls.py", "portal/api_urls.py", "portal/asgi.py", "portal/settings.py"}
# These tests cover the whole portal and take minutes. They are selected only if they or their helpers changed.
WALKS = ("tests/e2e/", "tests/faults/", "tests/load/", "tests/perf/", "tests/recovery/", "tests/soak/")
COMMANDS = "/management/commands/"
# The folders from which modules are imported, as `pythonpath` in pyproject.toml.
PYTHON_PATH = ("", "cli/")
IMPORT = re.compile(r"^[ \t]*(?:from ([\w.]+) import (\([^)]*\)|[^\n]*)|import ([^\n]*))", re.MULTILINE)
# Modules of fixtures that a conftest names, so that pytest imports them.
PLUGINS = re.compile(r"^pytest_plugins = \(([^)]*)\)", re.MULTILINE)
# Files that may name a template or another file that Python does not import.
READ = (".py", ".html", ".txt")


def since(root: Path, base: str) -> set[str]:
    """Returns the paths that differ from the commit at which this branch left `base`, and those that git does not track
    yet.
    """

    def git(*words: str) -> str:
        ran = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise UserError(f"git does not know {base}: {ran.stderr.strip()}", "Name a branch or a commit.")
        return ran.stdout

    begun = git("merge-base", base, "HEAD").strip()
    listed = git("diff", "--name-only", "-z", begun) + git("ls-files", "-z", "--others", "--exclude-standard")
    return {name for name in listed.split("\0") if name and not (root / name).is_dir()}


def tracked_texts(root: Path) -> dict[str, str]:
    """Returns path → text of every .py, .html and .txt file that git tracks or would track."""
    ran = subprocess.run(["git", "ls-files", "-zco", "--exclude-standard"], cwd=root, capture_output=True, check=True)
    names = {name for name in ran.stdout.decode().split("\0") if name.endswith(READ) and (root / name).is_file()}
    return {name: (root / name).read_text() for name in sorted(names)}


def select(changed: Iterable[str], texts: Mapping[str, str]) -> list[str]:
    """Returns the test files to run, sorted. `texts`: path → text of all sources and templates."""
    importers = _importers(texts)
    chosen = {ALWAYS}
    for path in changed:
        for source in {path} if path.endswith(".py") else _sources_of(path, texts):
            chosen |= _tests_near(source, importers, texts)
        if path.endswith(".md"):
            chosen.add(DOCUMENTS)
    return sorted(path for path in chosen if path in texts)


def _tests_near(source: str, importers: Mapping[str, set[str]], texts: Mapping[str, str]) -> set[str]:
    if source.startswith("tests/"):
        return _tests_with(source, importers, texts)
    direct = importers.get(source, set())
    step = {one for path in direct - COMPOSITION if not path.startswith("tests/") for one in importers.get(path, ())}
    # Only the tests themselves: a helper in tests/ that imports the module is used by many tests, which are not closely
    # related to it.
    near = {path for path in direct | step if _is_test(path)} | _mirrored(source, texts)
    if COMMANDS in source:
        called = f'"{PurePosixPath(source).stem}"'
        near |= {path for path, text in texts.items() if _is_test(path) and called in text}
    app = source.partition("/")[0]
    of_app = {path for path in texts if path.startswith(f"tests/{app}/") and _is_test(path)}
    return {path for path in near if not path.startswith(WALKS)} or of_app


def _tests_with(helper: str, importers: Mapping[str, set[str]], texts: Mapping[str, str]) -> set[str]:
    """Returns the test file itself, or the tests that import a helper (also through other helpers). For a conftest:
    also the tests in its folder and below.
    """
    found, todo = set(), [helper]
    while todo:
        path = todo.pop()
        if path in found:
            continue
        found.add(path)
        todo += importers.get(path, ())
        if path.endswith("/conftest.py"):
            todo += [one for one in texts if one.startswith(path.removesuffix("conftest.py")) and _is_test(one)]
    return {path for path in found if _is_test(path)}


def _mirrored(source: str, texts: Mapping[str, str]) -> set[str]:
    """Returns the tests of tests/desk/home/ for `desk/home/views.py`. If that folder has no tests, those of the nearest
    parent package.
    """
    for room in PurePosixPath(source.replace("cli/gpu_cli/", "cli/")).parents[:-1]:
        if tests := {path for path in texts if str(PurePosixPath(path).parent) == f"tests/{room}" and _is_test(path)}:
            return tests
    return set()


def _sources_of(path: str, texts: Mapping[str, str]) -> set[str]:
    """Returns the Python files that name this file, or that name a template which includes or extends it. Templates are
    named without their root folder.
    """
    found: set[str] = set()
    todo, seen = [path], set()
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        name = re.compile(rf"(?<![\w/-]){re.escape(one.removeprefix('templates/'))}(?![\w-])")
        for source, text in texts.items():
            if name.search(text):
                (found.add if source.endswith(".py") else todo.append)(source)
    return found


def _importers(texts: Mapping[str, str]) -> dict[str, set[str]]:
    """Returns file → files that import it. Imports for type checking and imports inside functions count."""
    found: dict[str, set[str]] = {}
    for path, text in texts.items():
        if path.endswith(".py"):
            for name in _imported(text):
                stem = name.replace(".", "/")
                for file in (f"{base}{stem}{end}" for base in PYTHON_PATH for end in (".py", "/__init__.py")):
                    if file in texts:
                        found.setdefault(file, set()).add(path)
    return found


def _imported(text: str) -> set[str]:
    """Returns the names of the imported modules. For `from a import b` these are a and a.b, because b may be a module
    or a name in a. Uses a regular expression: parsing all files takes ten seconds.
    """
    found = {name for listed in PLUGINS.findall(text) for name in re.findall(r'"([\w.]+)"', listed)}
    for module, names, modules in IMPORT.findall(text):
        found |= {module, *(f"{module}.{name}" for name in _names(names))} if module else set(_names(modules))
    return found


def _names(listed: str) -> list[str]:
    """For `(a, b as c,)` returns a and b."""
    without_comments = re.sub(r"#[^\n]*", "", listed)
    return [words[0] for part in without_comments.strip(" ()\n").split(",") if (words := part.split())]


def _is_test(path: str) -> bool:
    return path.startswith("tests/") and PurePosixPath(path).match("test_*.py")
