"""Runs the examples in docs/ci as GitHub Actions and GitLab CI do: with bash, their own variables and some of the
test's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cluster.manifests.names import run_name
from devcluster.client.types import Json
from devcluster.kubelet import scripted
from devcluster.kubelet.scripted import ScriptedKubelet

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "docs" / "ci"
# The wheel that was just built, installed with packages from the machine: the test needs no registry.
PIP = {
    "PIP_NO_INDEX": "1",
    "PIP_NO_DEPS": "1",
    "PIP_NO_BUILD_ISOLATION": "0",  # pip's option for no index
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
}


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def wheel(folder: Path) -> Path:
    """Builds from a copy: the build leaves files beside its sources."""
    source = shutil.copytree(ROOT / "cli", folder / "cli", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", folder, source]
    subprocess.run([str(part) for part in command], env={**os.environ, **PIP}, check=True, timeout=120)
    (built,) = folder.glob("*.whl")
    return built


def environment(home: Path, **variables: str) -> dict[str, str]:
    """The environment of a new runner: `pip` installs into its home, and nothing of this repository can be imported."""
    path = f"{home / 'packages' / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    kept = {"PATH": path, "HOME": str(home), "PIP_TARGET": str(home / "packages"), "PYTHONPATH": str(home / "packages")}
    return {**kept, **PIP, **variables}


def bash(script: str, home: Path, variables: Mapping[str, str], *, options: tuple[str, ...] = ("-e",)) -> Ended:
    done = subprocess.run(
        ["bash", *options, "-c", script],
        cwd=home,
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def five_lines(home: Path, variables: Mapping[str, str]) -> Ended:
    return bash((EXAMPLES / "five-lines.sh").read_text(), home, environment(home) | variables, options=())


def github(home: Path, variables: Mapping[str, str]) -> Ended:
    """Each step runs in a shell of its own; after a failed step only those with failure() run."""
    (job,) = yaml.safe_load((EXAMPLES / "github.yml").read_text())["jobs"].values()
    given = {"GITHUB_RUN_ID": variables["JOB"], "GITHUB_RUN_ATTEMPT": "1", "GITHUB_REF_NAME": "main"}
    known = environment(home) | _plain(job["env"]) | given | variables
    ended = Ended(0, "", "")
    for step in job["steps"]:
        assert set(step) <= {"name", "run", "if"}, "a step that is not run here"
        if (step.get("if") == "failure()") is (ended.code != 0):
            step_ended = bash(step["run"], home, known)
            ended = Ended(ended.code or step_ended.code, ended.out + step_ended.out, ended.err + step_ended.err)
    return ended


def gitlab(home: Path, variables: Mapping[str, str]) -> Ended:
    """before_script and script run in one shell."""
    (job,) = yaml.safe_load((EXAMPLES / "gitlab.yml").read_text()).values()
    given = {"CI_JOB_ID": variables["JOB"], "CI_COMMIT_REF_NAME": "main"}
    known = environment(home) | _plain(job["variables"]) | given | variables
    return bash("\n".join([*job["before_script"], *job["script"]]), home, known, options=("-e", "-o", "pipefail"))


def _plain(variables: Mapping[str, Any]) -> dict[str, str]:
    """The test gives the values that the CI system fills in."""
    return {name: str(text) for name, text in variables.items() if "${{" not in str(text)}


def play(found: ScriptedKubelet, pod: Json) -> None:
    name = pod["metadata"]["labels"]["gpu-portal/workload"]
    does_stay = name.endswith("stays") or pod["metadata"]["name"].startswith(f"{run_name('pushed', 1)}-")
    script = scripted.runs if does_stay else scripted.ends(3 if name.endswith("fails") else 0)
    script(found, pod)
