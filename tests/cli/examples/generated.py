"""A client generated from the contract alone, by openapi-python-client in an environment of its own, which is cached
per user by its recipe.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from devcluster.controlplane.programs import REQUIREMENTS, cache_home

LOCKED = REQUIREMENTS / "client.txt"


def generator() -> Path:
    """The Python of that environment. An incomplete one is never used: it gets its name when it is complete."""
    recipe = hashlib.sha256(LOCKED.read_bytes() + sys.version.encode()).hexdigest()[:16]
    home = cache_home() / "client" / recipe
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as folder:
            made = Path(folder) / "made"
            _run(sys.executable, "-m", "venv", made)
            # Not by uv, which is not installed everywhere; run.py also works without it.
            _run(made / "bin/python", "-m", "pip", "install", "--quiet", "--require-hashes", "-r", LOCKED)
            if not home.exists():
                made.rename(home)
    return home / "bin" / "python"


def client(contract: bytes, folder: Path) -> Path:
    """The package, in a folder to import from. Raises AssertionError if the generator prints a warning about it."""
    document, out = folder / "openapi.json", folder / "client"
    document.write_bytes(contract)
    said = _run(
        generator(), "-m", "openapi_python_client", "generate", "--path", document, "--output-path", out,
        "--meta", "none", "--fail-on-warning",
    )  # fmt: skip
    assert said.strip() == f"Generating {out}", said
    return out


def _run(*command: object) -> str:
    # The generator calls the ruff of its own environment by name.
    program, *arguments = map(str, command)
    environment = os.environ | {"PATH": f"{Path(program).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [program, *arguments], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
