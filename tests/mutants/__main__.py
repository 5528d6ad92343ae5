"""Apply each patch to a copy of the tree and see its test turn red. Exit 1 when one stays green."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PATCHES = Path(__file__).parent
# pytest: 1 = tests failed, 2 = interrupted by errors such as a test that cannot be collected.
TESTS_FAILED = 1


@dataclass(frozen=True)
class Mutant:
    name: str
    test: str
    patch: Path


def read_mutant(path: Path) -> Mutant:
    for line in path.read_text().splitlines():
        if line.startswith("# test: "):
            return Mutant(path.stem, line.removeprefix("# test: ").strip(), path)
    raise SystemExit(f"{path.name} does not say which test it turns red (a line '# test: tests/…::…').")


def copy_of_tree(to: Path) -> None:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["cp", "--parents", "-t", str(to), *files.decode().rstrip("\0").split("\0")], cwd=ROOT, check=True)


def run_test(tree: Path, test: str) -> int:
    command = [sys.executable, "-m", "pytest", "-p", "tests.plugin", "-q", "-x", "--no-header", test]
    done = subprocess.run(command, cwd=tree, env=dict(os.environ), capture_output=True, text=True, check=False)
    if done.returncode not in (0, TESTS_FAILED):
        print(done.stdout[-2000:], done.stderr[-2000:], sep="\n")
    return done.returncode


def verdict(mutant: Mutant) -> str:
    """ "red" is what we want; everything else names what is wrong."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as directory:
        tree = Path(directory)
        copy_of_tree(tree)
        applied = subprocess.run(
            ["git", "apply", "--recount", str(mutant.patch)], cwd=tree, capture_output=True, text=True, check=False
        )
        if applied.returncode != 0:
            return f"does not apply any more: {applied.stderr.strip()}"
        code = run_test(tree, mutant.test)
    return {0: "STILL GREEN", TESTS_FAILED: "red"}.get(code, f"pytest ended with {code}")


def main() -> int:
    mutants = [read_mutant(path) for path in sorted(PATCHES.glob("*.patch"))]
    survived = 0
    for mutant in mutants:
        said = verdict(mutant)
        survived += said != "red"
        print(f"{mutant.name:45} {said:12} {mutant.test}", flush=True)
    print(f"{len(mutants) - survived} of {len(mutants)} mutants were seen.")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
