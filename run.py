#!/usr/bin/env python3
"""The commands of the README. This file only switches to the virtual environment; the commands are in devcluster/."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    try:
        from devcluster.bootstrap import enter
    except (SyntaxError, ImportError):
        sys.exit("Python 3.11 or newer is needed. Start run.py with one, for example: python3.11 run.py demo")
    sys.exit(enter(sys.argv[1:]))
