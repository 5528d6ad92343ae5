"""etcd, kube-apiserver, kube-controller-manager and kube-scheduler: their commands, and their readiness checks."""

from __future__ import annotations

import http.client
import os
import secrets
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from devcluster.client.kube import Api, ApiError
from devcluster.controlplane import pki as pki_module
from devcluster.controlplane.pki import Pki
from devcluster.controlplane.programs import Programs
from devcluster.processes.private_files import write_private
from devcluster.processes.supervisor import Command

# All controllers except those that call a cloud provider or assign address ranges for pods: neither exists here.
CONTROLLERS = "*,-nodeipam,-cloud-node-lifecycle,-service-lb-controller,-node-route-controller"
# Clients of the API server: user name and group. They authenticate with tokens, because the API server verifies a
# client certificate again at each request, which takes a tenth of its processor time.
USERS = {
    "admin": ("devcluster-admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", "system:masters"),
    "scheduler": ("system:kube-scheduler", ""),
}
# The portal reads from the Leases whether these programs work. A loaded machine may delay a renewal: a program that
# missed the deadline would end.
LEADER_ELECTION = {
    "leader-elect": "true",
    "leader-elect-lease-duration": "180s",
    "leader-elect-renew-deadline": "150s",
    "leader-elect-retry-period": "5s",
}
LEASES = {
    "kube-system": ("kube-scheduler", "kube-controller-manager"),
    "kueue-system": ("c1f6bfd2.kueue.x-k8s.io",),
}
# Settings for temporary clusters: the garbage collector of Go runs less often and the programs use more memory. With
# the defaults it takes a tenth of the processor time.
SELDOM_COLLECTED = {"GOGC": "300", "GOMEMLIMIT": "4GiB"}


@dataclass(frozen=True)
class ControlPlane:
    programs: Programs
    pki: Pki
    state: Path
    ports: dict[str, int]
    unsafe: bool  # temporary data: no fsync

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.ports['apiserver']}"

    @property
    def _tokens(self) -> Path:
        return self.state / "tokens.csv"

    def kubeconfig(self, client: str) -> Path:
        return self.state / "kubeconfig" / client

    def write_kubeconfigs(self, more: Mapping[str, tuple[str, str]] | None = None) -> None:
        """Writes a kubeconfig per client, with new tokens at each start. The API server reads its list of tokens when
        it starts. `more`: clients beside USERS.
        """
        known = []
        for client, (name, group) in {**USERS, **(more or {})}.items():
            token = secrets.token_urlsafe(32)
            pki_module.kubeconfig(self.kubeconfig(client), server=self.url, pki=self.pki, token=token)
            known.append(",".join(filter(None, (token, name, name, group))))
        write_private(self._tokens, "\n".join(known))

    def etcd(self) -> Command:
        client, peer = (f"https://127.0.0.1:{self.ports[name]}" for name in ("etcd", "etcd-peer"))
        pki = self.pki
        flags = {
            "data-dir": self.state / "etcd",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
            "cert-file": pki.cert("server"),
            "key-file": pki.key("server"),
            "client-cert-auth": "true",
            "trusted-ca-file": pki.cert("ca"),
            "peer-cert-file": pki.cert("server"),
            "peer-key-file": pki.key("server"),
            "peer-client-cert-auth": "true",
            "peer-trusted-ca-file": pki.cert("ca"),
            "log-level": "warn",
            "auto-compaction-mode": "periodic",
            "auto-compaction-retention": "10m",
            **({"unsafe-no-fsync": "true"} if self.unsafe else {}),
        }
        return self._command("etcd", flags, self._healthy("etcd", "/health", client="etcd-client"))

    def apiserver(self) -> Command:
        pki = self.pki
        flags = {
            "bind-address": "127.0.0.1",
            "secure-port": self.ports["apiserver"],
            "etcd-servers": f"https://127.0.0.1:{self.ports['etcd']}",
            "etcd-cafile": pki.cert("ca"),
            "etcd-certfile": pki.cert("etcd-client"),
            "etcd-keyfile": pki.key("etcd-client"),
            "client-ca-file": pki.cert("ca"),
            "token-auth-file": self._tokens,
            "tls-cert-file": pki.cert("server"),
            "tls-private-key-file": pki.key("server"),
            "authorization-mode": "Node,RBAC",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": pki.file("service-accounts.pub"),
            "service-account-signing-key-file": pki.key("service-accounts"),
            "service-cluster-ip-range": "10.0.0.0/16",
            "endpoint-reconciler-type": "none",
            "requestheader-client-ca-file": pki.cert("front-ca"),
            "requestheader-allowed-names": "",
            "requestheader-username-headers": "X-Remote-User",
            "requestheader-group-headers": "X-Remote-Group",
            "requestheader-extra-headers-prefix": "X-Remote-Extra-",
            "proxy-client-cert-file": pki.cert("front-client"),
            "proxy-client-key-file": pki.key("front-client"),
            "kubelet-client-certificate": pki.cert("kubelet-client"),
            "kubelet-client-key": pki.key("kubelet-client"),
            "kubelet-preferred-address-types": "InternalIP",
            "profiling": "false",
        }
        return self._command("kube-apiserver", flags, self._healthy("apiserver", "/readyz", client="admin"))

    def controller_manager(self) -> Command:
        flags = {
            "kubeconfig": self.kubeconfig("controller-manager"),
            "authentication-kubeconfig": "",
            "bind-address": "127.0.0.1",
            "secure-port": self.ports["controller-manager"],
            "service-account-private-key-file": self.pki.key("service-accounts"),
            "root-ca-file": self.pki.cert("ca"),
            **LEADER_ELECTION,
            "controllers": CONTROLLERS,
        }
        return self._command("kube-controller-manager", flags, self._healthy("controller-manager", "/healthz"))

    def scheduler(self) -> Command:
        flags = {
            "kubeconfig": self.kubeconfig("scheduler"),
            "bind-address": "127.0.0.1",
            "secure-port": self.ports["scheduler"],
            **LEADER_ELECTION,
        }
        return self._command("kube-scheduler", flags, self._healthy("scheduler", "/healthz"))

    @property
    def environment(self) -> dict[str, str]:
        return {**(SELDOM_COLLECTED if self.unsafe else {}), **os.environ}

    def _command(self, program: str, flags: dict[str, object], ready: _Ready) -> Command:
        argv = [self.programs[program], *(f"--{name}={value}" for name, value in flags.items())]
        return Command(program, argv, env=self.environment, ready=ready)

    def _healthy(self, port: str, path: str, *, client: str = "") -> _Ready:
        pair = (str(self.pki.cert(client)), str(self.pki.key(client))) if client else None
        return _Ready(self.ports[port], path, pair)


@dataclass(frozen=True)
class _Ready:
    """When called, returns whether the address on loopback answers 200. The server's certificate is not verified."""

    port: int
    path: str
    client: tuple[str, str] | None

    def __call__(self) -> bool:
        context = ssl._create_unverified_context()
        if self.client is not None:
            context.load_cert_chain(*self.client)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=2, context=context)
        try:
            connection.request("GET", self.path)
            return connection.getresponse().status == 200
        except http.client.HTTPException:
            return False
        finally:
            connection.close()


def has_default_roles(api: Api) -> bool:
    """Returns whether the default RBAC roles exist. /readyz may answer before they do; until then, clients have no
    rights.
    """
    return api.find("rbac.authorization.k8s.io/v1/clusterroles", "system:kube-scheduler") is not None


def forget_leases(api: Api) -> None:
    """Deletes Leases of an earlier start, whose holders have ended: their successors would wait until these expire."""
    for namespace, names in LEASES.items():
        for name in names:
            with suppress(ApiError):
                api.delete("coordination.k8s.io/v1/leases", name, namespace=namespace)
