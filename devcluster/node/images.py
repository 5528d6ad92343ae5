"""Container images without a registry: a base of the distribution's packages (debootstrap), and what is built on it
with podman. Built once and cached per user as one archive, under the hash of its recipe.

`real.node/python:1` runs jobs and clones repositories, `real.node/notebook:1` has JupyterLab, `real.node/pause:1` holds
a pod's network.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from devcluster.controlplane.programs import REQUIREMENTS, cache_home
from devcluster.node.configuration import PAUSE_IMAGE
from devcluster.node.machine import PATH
from devcluster.processes.console import UserError, note, step
from devcluster.processes.paths import ROOT
from devcluster.processes.supervisor import Command, Supervisor

PYTHON_IMAGE = "real.node/python:1"
NOTEBOOK_IMAGE = "real.node/notebook:1"
NOTEBOOK_NAME = "JupyterLab of the real node"
# What a catalog says of them: name → fields.
CATALOG = {
    NOTEBOOK_NAME: {"kind": "notebook", "version": "1", "reference": NOTEBOOK_IMAGE, "contents": "JupyterLab, Python"},
    "Python of the real node": {"kind": "job", "version": "1", "reference": PYTHON_IMAGE, "contents": "Python, git"},
}
# The names that deploy/ uses.
PORTAL_IMAGE, GATEWAY_IMAGE = "registry.example.org/gpu-portal:0.1.0", "docker.io/library/caddy:2.11.9-alpine"
# The base of the portal's image is smaller: no git, which needs Perl, and no pip.
PORTAL_PACKAGES = ("python3", "python3-venv", "ca-certificates")
PORTAL_BASE = f"real.node/base:{'-'.join(PORTAL_PACKAGES)}"
PACKAGES = ("python3", "python3-venv", "python3-pip", "ca-certificates", "git", "tini")
# Debian's podman prefers crun, which refuses hybrid control groups; its usual limits need CAP_SYS_RESOURCE.
PODMAN = ("--runtime", "/usr/sbin/runc", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096")
# So that a machine with its own certificate authority or package index builds as it installs.
_OF_MACHINE = ("/etc/ssl/certs", "/etc/pip.conf")
# As in slim images of others.
UNUSED = (
    "var/cache/apt/archives",
    "var/lib/apt/lists",
    *(f"usr/share/{one}" for one in ("doc", "info", "locale", "man")),
)
BUILD_WITHIN_S = 1200


def recipes() -> dict[str, str]:
    """Dockerfiles by image, in the order of their build."""
    [jupyterlab] = re.findall(r"^(jupyterlab==\S+)", (REQUIREMENTS / "dev.txt").read_text(), re.MULTILINE)
    pip = "/opt/venv/bin/pip install --no-cache-dir --disable-pip-version-check"
    return {
        PAUSE_IMAGE: f'FROM {PYTHON_IMAGE}\nENTRYPOINT ["tini", "--", "sleep", "infinity"]\n',
        NOTEBOOK_IMAGE: (
            f"FROM {PYTHON_IMAGE}\n"
            f"RUN python3 -m venv /opt/venv && {pip} {jupyterlab}\n"
            "ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin\n"
        ),
    }


def find_or_build(supervisor: Supervisor) -> Path:
    """Returns the archive with all images."""
    home = cache_home() / "node-images"
    digest = hashlib.sha256(json.dumps([PACKAGES, recipes()]).encode()).hexdigest()[:16]
    archive = home / f"{digest}.tar"
    if archive.exists():
        return archive
    home.mkdir(parents=True, exist_ok=True)
    note("Building the images of the real node, once per user: about 4 minutes on two cores.")
    with tempfile.TemporaryDirectory(prefix="gpu-portal-images-", dir=home) as folder:
        _base(supervisor, Path(folder) / "root", PYTHON_IMAGE, PACKAGES)
        for image, dockerfile in recipes().items():
            with step(f"Built {image}"):
                file = Path(folder) / "Dockerfile"
                file.write_text(dockerfile)
                _build(supervisor, image, file, Path(folder))
        with step("Images written"):
            making = archive.with_suffix(f".{os.getpid()}.making")
            _save(supervisor, making, PYTHON_IMAGE, *recipes())
            making.rename(archive)
    return archive


def build_portal(supervisor: Supervisor, caddy: Path, folder: Path) -> Path:
    """Builds the portal's image with the Dockerfile of this tree, on the base of Debian's packages instead of Docker's,
    and an image of this `caddy` under the name of Caddy's own. Returns an archive in `folder` with both.
    """
    folder.mkdir(exist_ok=True)
    ensure_bases(supervisor, folder)
    _build(supervisor, PORTAL_IMAGE, ROOT / "Dockerfile", ROOT, "--build-arg", f"BASE={PORTAL_BASE}")
    shutil.copyfile(caddy, folder / "caddy")
    (folder / "caddy").chmod(0o755)
    (folder / "Dockerfile").write_text(f"FROM {PYTHON_IMAGE}\nCOPY caddy /usr/bin/caddy\n")
    _build(supervisor, GATEWAY_IMAGE, folder / "Dockerfile", folder)
    archive = folder / "portal.tar"
    _save(supervisor, archive, PORTAL_IMAGE, GATEWAY_IMAGE)
    return archive


def ensure_bases(supervisor: Supervisor, folder: Path) -> None:
    """PORTAL_BASE and PYTHON_IMAGE are among the images of this user's podman afterwards. `folder`: for a new base."""
    if not _has(PORTAL_BASE):
        _base(supervisor, folder / "root", PORTAL_BASE, PORTAL_PACKAGES)
    if not _has(PYTHON_IMAGE):
        _run(supervisor, "podman-load", ["podman", "load", "--quiet", "-i", find_or_build(supervisor)])


def machine_mounts() -> list[str]:
    """Options of a build that downloads packages."""
    return [f"--volume={path}:{path}:ro" for path in _OF_MACHINE if Path(path).exists()]


def _has(image: str) -> bool:
    found = subprocess.run(["podman", "image", "exists", image], check=False, env={**os.environ, "PATH": PATH})
    return found.returncode == 0


def _build(supervisor: Supervisor, image: str, dockerfile: Path, context: Path, *options: str) -> None:
    build: list[object] = ["podman", "build", *PODMAN, "--network", "host", *machine_mounts(), *options]
    build += ["-t", image, "-f", dockerfile, context]
    _run(supervisor, "podman-build", build)


def _save(supervisor: Supervisor, archive: Path, *names: str) -> None:
    archive.unlink(missing_ok=True)
    _run(supervisor, "podman-save", ["podman", "save", "--quiet", "-m", "-o", archive, *names])


def _base(supervisor: Supervisor, root: Path, image: str, packages: tuple[str, ...]) -> None:
    suite, mirror = _distribution()
    with step(f"Base image of {suite}'s packages"):
        include = f"--include={','.join(packages)}"
        _run(supervisor, "debootstrap", ["debootstrap", "--variant=minbase", include, suite, root, mirror])
        for folder in UNUSED:
            shutil.rmtree(root / folder, ignore_errors=True)
        packed = root.with_suffix(".tar")
        _run(supervisor, "tar", ["tar", "-C", root, "-cf", packed, "."])
        shutil.rmtree(root)
        _run(supervisor, "podman-import", ["podman", "import", "--quiet", packed, image])
        packed.unlink()


def _distribution() -> tuple[str, str]:
    """Returns this machine's release and its mirror, so that the base comes from where the machine's packages come."""
    suite = re.findall(r"^VERSION_CODENAME=(\S+)", Path("/etc/os-release").read_text(), re.MULTILINE)
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages"]
    listed = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.splitlines()
    for mirror, release in (line.split() for line in listed if len(line.split()) == 2):
        if [release] == suite:
            return release, mirror
    raise UserError(
        "This machine's package index does not name a mirror of its own release.",
        "The images of the real node are built from Debian or Ubuntu packages; run it on such a machine.",
    )


def _run(supervisor: Supervisor, name: str, argv: list[object]) -> None:
    ran = supervisor.run(Command(name, argv, env={**os.environ, "PATH": PATH}), within_s=BUILD_WITHIN_S)
    if ran.process.returncode:
        raise UserError(f"{argv[0]} failed. Its last lines:\n{ran.last_lines()}", f"Full log: {ran.log}.")
