"""The product's source: its files, modules and imports."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
# From the bottom to the top.
APPS = ("accounts", "cluster", "catalog", "tenants", "workloads", "usage", "operations", "desk")
PACKAGES = ("portal", *APPS, "devcluster")


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return [path for name in listed.split("\0") if name and (path := ROOT / name).exists()]


def product_modules() -> list[Path]:
    """Modules of the apps, `portal`, `devcluster` and the command, without migrations."""
    tops = {*PACKAGES, "cli"}
    found = [path for path in tracked_files() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in tops]
    return [path for path in found if "migrations" not in path.parts]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@functools.cache
def import_graph() -> dict[str, frozenset[str]]:
    """Module → modules that it imports, including imports inside functions and for types only. About 2 s, once per
    process.
    """
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    return {module: frozenset(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
