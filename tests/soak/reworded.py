"""Runs all tests with other words in every sentence of the product: only tests of words may fail. `run.py soak
reworded`.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support import rewording
from tests.support.source import ROOT

# Labels and help texts of models are part of the migrations.
LABELS = "tests/test_shape.py::test_models_and_migrations_agree"


def test_no_behaviour_depends_on_a_sentence() -> None:
    """Prints what still fails: code that decides by a sentence, or a test whose failure does not show the expected
    text.
    """
    command = [sys.executable, "-m", "pytest", "-p", "tests.plugin", "-n", "4", "--dist", "loadfile", "-q", "-vv"]
    done = subprocess.run(
        [*command, "--tb=short", "-m", "not browser", "--deselect", LABELS, "tests"],
        cwd=ROOT,
        env={**os.environ, rewording.VARIABLE: "1"},
        capture_output=True,
        text=True,
    )
    failures = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    assert done.returncode == 0, "\n".join(failures) or done.stdout[-3000:] + done.stderr[-3000:]
