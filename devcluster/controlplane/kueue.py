"""Runs Kueue's manager outside the cluster: its CRDs, its webhooks (with the URL of a local port), settings and
certificates.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from devcluster.client import crds, yaml_files
from devcluster.client.kube import Api, ApiError
from devcluster.controlplane.components import ControlPlane
from devcluster.processes.console import UserError
from devcluster.processes.paths import ROOT
from devcluster.processes.private_files import write_private
from devcluster.processes.readiness import answers_ready
from devcluster.processes.supervisor import Command

# The settings of production. `_settings` changes addresses, certificates, leader election and the client's rate limit.
SETTINGS = ROOT / "deploy" / "kueue" / "manager-config.yaml"
CONVERTED = {"localqueues", "clusterqueues", "cohorts", "workloads", "multikueueclusters"}
# Webhooks of kinds that exist here. The manifest also contains those of a dozen other job frameworks.
WEBHOOKS = {"clusterqueue", "cohort", "resourceflavor", "workload", "job"}
OUTSIDE = {"matchExpressions": [
    {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "kueue-system"]}
]}  # fmt: skip
CONFIGURATIONS = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
VISIBILITY = "/apis/visibility.kueue.x-k8s.io/v1beta2"


@dataclass(frozen=True)
class Kueue:
    plane: ControlPlane

    @property
    def home(self) -> Path:
        return self.plane.state / "kueue"

    def install(self, api: Api) -> None:
        """Applies the CRDs, and Service and APIService of the visibility API. The admission webhooks are applied later,
        by `install_webhooks`, when the manager answers: before that, they would block all writes.
        """
        for manifest in sorted((self.plane.programs.directory / "kueue/crd").glob("*.yaml")):
            definition = yaml_files.read(manifest)
            if definition["spec"]["names"]["plural"] in CONVERTED:
                client = {"url": self._url("/convert"), "caBundle": self.plane.pki.ca_bundle}
                webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
                definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
            crds.put(api, definition)
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}})
        name = "kueue-visibility-server"
        # With ExternalName the API server's aggregator connects to localhost. An EndpointSlice may not contain a
        # loopback address.
        spec = {
            "type": "ExternalName",
            "externalName": "localhost",
            "ports": [{"port": self.plane.ports["visibility"]}],
        }
        metadata = {"name": name, "namespace": "kueue-system"}
        api.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
        service = {"name": name, "namespace": "kueue-system", "port": self.plane.ports["visibility"]}
        api.apply(
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": "v1beta2.visibility.kueue.x-k8s.io"},
                "spec": {
                    "group": "visibility.kueue.x-k8s.io",
                    "version": "v1beta2",
                    "groupPriorityMinimum": 100,
                    "versionPriority": 100,
                    "insecureSkipTLSVerify": True,
                    "service": service,
                },
            }
        )

    def install_webhooks(self, api: Api) -> None:
        for configuration in yaml_files.read_all(self.plane.programs.directory / "kueue/webhook/manifests.yaml"):
            configuration["metadata"]["name"] = "kueue-" + configuration["metadata"]["name"]
            kept = [hook for hook in configuration["webhooks"] if hook["name"][1:].removesuffix(".kb.io") in WEBHOOKS]
            for hook in kept:
                url = self._url(hook["clientConfig"]["service"]["path"])
                hook["clientConfig"] = {"url": url, "caBundle": self.plane.pki.ca_bundle}
                if hook["name"].endswith("job.kb.io"):
                    hook["namespaceSelector"] = OUTSIDE
            configuration["webhooks"] = kept
            api.apply(configuration)

    def command(self) -> Command:
        certificates = self.home / "certificates"
        certificates.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(self.plane.pki.cert("server"), certificates / "tls.crt")
        write_private(certificates / "tls.key", self.plane.pki.key("server").read_text())
        settings = self.home / "manager.yaml"
        write_private(settings, yaml.safe_dump(self._settings(certificates)))
        # In the private root there are no resolver settings and no other programs. The manager needs none: it is a
        # static binary and uses only loopback.
        argv = [self.plane.programs["kueue"], f"--config={settings}", f"--kubeconfig={self.plane.kubeconfig('admin')}"]
        script = self.home / "in-private-root.sh"
        write_private(script, self._script(certificates, [str(word) for word in argv]))
        argv = [*private_root(), "sh", str(script)]
        ready = partial(answers_ready, self.plane.ports["kueue-health"])
        return Command("kueue", argv, env=self.plane.environment, ready=ready, ready_within_s=60)

    def serving(self, api: Api) -> bool:
        """Returns whether the API server forwards a request for pending workloads (their queue positions) to Kueue's
        visibility API. The queue `none` does not exist, so the expected answer is Kueue's own 404.
        """
        try:
            api.request("GET", f"{VISIBILITY}/clusterqueues/none/pendingworkloads")
        except ApiError as error:
            return error.status == 404 and "none" in str(error.body.get("message", ""))
        return True

    def _url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.plane.ports['kueue-webhook']}{path}"

    def _settings(self, certificates: Path) -> dict[str, Any]:
        settings = yaml_files.read(SETTINGS)
        ports = self.plane.ports
        settings["leaderElection"] |= {
            "resourceNamespace": "kueue-system",
            "leaseDuration": "180s",
            "renewDeadline": "150s",
            "retryPeriod": "5s",
        }
        settings["internalCertManagement"] = {"enable": False}
        settings["health"] = {"healthProbeBindAddress": f"127.0.0.1:{ports['kueue-health']}"}
        settings["metrics"]["bindAddress"] = f"127.0.0.1:{ports['kueue-metrics']}"
        settings["webhook"] = {"host": "127.0.0.1", "port": ports["kueue-webhook"], "certDir": str(certificates)}
        settings["visibilityServer"] = {"bindAddress": "127.0.0.1", "bindPort": ports["visibility"]}
        # With the default rate limit of Kueue's client, a burst of Jobs in a test would wait for the client, not for
        # the cluster.
        settings["clientConnection"] = {"qps": 200, "burst": 400}
        return settings

    def _script(self, certificates: Path, argv: list[str]) -> str:
        """Returns a shell script that starts the manager in a private root directory. The manager requires files at two
        fixed paths below /; this way they are not created in the root directory of this machine.
        """
        root = self.home / "root"
        root.mkdir(mode=0o700, exist_ok=True)
        seen = {self.plane.state.resolve(), self.plane.programs.directory.resolve()}
        lines = [
            "set -e",
            "PATH=$PATH:/usr/sbin:/sbin",
            f"R={shlex.quote(str(root))}",
            'mount -t tmpfs -o mode=700 tmpfs "$R"',
        ]
        for path in ("/proc", "/dev", *sorted(str(path) for path in seen)):
            quoted = shlex.quote(path)
            lines += [f'mkdir -p "$R"{quoted}', f'mount --rbind {quoted} "$R"{quoted}']
        for path in ("/visibility", "/etc/kueue/metrics/certs"):
            lines += [f'mkdir -p "$R"{path}', f'cp {shlex.quote(str(certificates))}/tls.* "$R"{path}']
        lines.append('mkdir -p "$R/tmp"')
        lines.append('exec chroot "$R" ' + " ".join(shlex.quote(word) for word in argv))
        return "\n".join(lines) + "\n"


def private_root() -> list[str]:
    """Returns the command prefix that creates a mount namespace on this machine. root may need no user namespace for
    it; other users always do. Raises UserError if it is not allowed.
    """
    tries = [["unshare", "--user", "--map-root-user", "--mount"]]
    if os.geteuid() == 0:
        tries.insert(0, ["unshare", "--mount"])
    for argv in tries:
        probe = [*argv, "sh", "-c", "mount -t tmpfs tmpfs /tmp"]
        try:
            if subprocess.run(probe, capture_output=True, timeout=20, check=False).returncode == 0:
                return argv
        except FileNotFoundError:
            break
        except subprocess.TimeoutExpired:
            continue
    raise UserError(
        "Kueue needs a private view of the file system, and this machine allows neither mount nor user namespaces.",
        "Allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1 and "
        "kernel.apparmor_restrict_unprivileged_userns=0), run as root, or use a cluster of your own with --kubeconfig.",
    )
