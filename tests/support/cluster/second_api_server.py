"""A second API server of the embedded control plane, whose certificate and CA a test may replace."""

from __future__ import annotations

import http.client
import shutil
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509

from devcluster.client.kubeconfig import read_kubeconfig, write_kubeconfig
from devcluster.controlplane import pki
from devcluster.processes.ports import free_port
from devcluster.processes.private_files import write_private
from devcluster.processes.supervisor import Command, Supervisor


@dataclass
class SecondApiServer:
    """`kubeconfig` signs in as one identity and has the CA inside; `with_files` names files of CA and token."""

    home: Path
    port: int
    token: str
    signed_by: pki.Pki
    supervisor: Supervisor

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def kubeconfig(self) -> Path:
        return self.home / "kubeconfig"

    @property
    def with_files(self) -> Path:
        return self.home / "kubeconfig-with-files"

    @property
    def serial(self) -> int:
        """Of the certificate that it serves now."""
        pem = ssl.get_server_certificate(("127.0.0.1", self.port), timeout=10)
        return x509.load_pem_x509_certificate(pem.encode()).serial_number

    @property
    def serial_wanted(self) -> int:
        return x509.load_pem_x509_certificate(self.signed_by.cert("server").read_bytes()).serial_number

    def swap_certificate(self) -> None:
        """Another certificate, of another CA. The API server reads the files again by itself."""
        self.signed_by = pki.make(self.home / f"{self.signed_by.directory.name}-next")
        self._put(self.signed_by.cert("server"), "server.crt")
        self._put(self.signed_by.key("server"), "server.key")

    def tell_clients(self) -> None:
        """The CA in both kubeconfigs is the one of now."""
        self._put(self.signed_by.cert("ca"), "ca.crt")
        inside = {"server": self.url, "certificate-authority-data": self.signed_by.ca_bundle}
        write_kubeconfig(self.home / "written", inside, {"token": self.token}).rename(self.kubeconfig)

    def kubeconfig_of(self, token: str, name: str) -> Path:
        """For the identity of this token."""
        inside = {"server": self.url, "certificate-authority-data": self.signed_by.ca_bundle}
        return write_kubeconfig(self.home / name, inside, {"token": token})

    def write_token(self, token: str) -> None:
        write_private(self.home / "token", token)

    def _put(self, source: Path, name: str) -> None:
        shutil.copy(source, self.home / "copied")
        (self.home / "copied").rename(self.home / name)

    def is_up(self) -> bool:
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=5, context=context)
        # Not /readyz: rights are read a moment later.
        connection.request("GET", "/api/v1/namespaces?limit=1", headers={"Authorization": f"Bearer {self.token}"})
        return connection.getresponse().status == 200


@contextmanager
def second_api_server(
    services: dict[str, Any], home: Path, more: Mapping[str, object] | None = None, *, identity: str = "watcher"
) -> Iterator[SecondApiServer]:
    """On the same etcd, with the same flags except for its port and certificate. `more`: further flags. `identity`: of
    the client in its kubeconfigs.
    """
    argv = Path(f"/proc/{services['pids']['kube-apiserver']}/cmdline").read_text().rstrip("\0").split("\0")
    token = str(read_kubeconfig(Path(services["kubeconfigs"][identity]))["user"]["token"])
    with Supervisor(home / "log") as supervisor:
        found = SecondApiServer(home, free_port(), token, pki.make(home / "pki"), supervisor)
        found._put(found.signed_by.cert("server"), "server.crt")
        found._put(found.signed_by.key("server"), "server.key")
        found.write_token(token)
        found.tell_clients()
        write_kubeconfig(
            found.with_files, {"server": found.url, "certificate-authority": "ca.crt"}, {"tokenFile": "token"}
        )
        own = {
            "secure-port": found.port,
            "tls-cert-file": home / "server.crt",
            "tls-private-key-file": home / "server.key",
            **(more or {}),
        }
        kept = [one for one in argv if one.partition("=")[0].removeprefix("--") not in own]
        flags = [f"--{name}={value}" for name, value in own.items()]
        supervisor.start(Command("second-api-server", [*kept, *flags], ready=found.is_up, ready_within_s=90))
        supervisor.until_ready()
        yield found
