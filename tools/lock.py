#!/usr/bin/env python3
"""Compiles requirements/*.in to *.txt: every version pinned with hashes, for all platforms, no package index named.

python3 tools/lock.py [--upgrade]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = "3.11"


def main(arguments: list[str]) -> int:
    for source in ("run", "dev", "go", "client"):
        command = [str(ROOT / ".venv/bin/uv"), "pip", "compile", "--quiet", "--universal", "--python-version", PYTHON]
        command += ["--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--no-annotate", *arguments]
        command += ["--custom-compile-command", "python3 tools/lock.py"]
        command += [f"requirements/{source}.in", "-o", f"requirements/{source}.txt"]
        if source == "dev":
            command += ["-c", "requirements/run.txt"]  # tests run what production runs
        if code := subprocess.run(command, cwd=ROOT, check=False).returncode:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
