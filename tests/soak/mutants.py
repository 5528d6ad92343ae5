"""Each patch in tests/mutants/ must make the test that it names fail: `run.py soak mutants`.

A patch begins with lines `# <why this must not go unseen>` and `# test: <pytest node id>`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PATCHES = sorted((ROOT / "tests" / "mutants").glob("*.patch"))
TESTS_FAILED = 1


@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: path.stem)
def test_the_mutant_is_seen(patch: Path, tmp_path: Path) -> None:
    named = [line.removeprefix("# test: ") for line in patch.read_text().splitlines() if line.startswith("# test: ")]
    assert named, f"{patch.name} does not say which test it turns red"
    copy_of_tree(tmp_path)
    applied = subprocess.run(["git", "apply", "--recount", str(patch)], cwd=tmp_path, capture_output=True, text=True)
    assert applied.returncode == 0, f"does not apply any more: {applied.stderr}"
    command = [sys.executable, "-m", "pytest", "-p", "tests.plugin", "-q", "-x", "--no-header", *named]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == TESTS_FAILED, done.stdout[-3000:] + done.stderr[-1000:]


def copy_of_tree(to: Path) -> None:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    names = [name for name in files.decode().rstrip("\0").split("\0") if (ROOT / name).exists()]
    subprocess.run(["cp", "--parents", "-t", str(to), *names], cwd=ROOT, check=True)
