"""The certificate of the gateway is replaced while it serves: `deploy/gateway.sh` runs the real Caddy."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from websockets.sync.client import ClientConnection, connect

from devcluster.controlplane import pki
from devcluster.processes.ports import free_port
from tests.deploy.gateway import Recorder, serving
from tests.support.cluster.identities import until
from tests.support.shipped import DEPLOY

WITHIN_S = 60.0
HOST, NOTEBOOK = "portal.test", "mine.notebooks.test"


@dataclass
class Served:
    port: int
    home: Path
    log: Path
    statuses: Counter[int] = field(default_factory=Counter)
    cut: list[str] = field(default_factory=list)

    def put(self, made: pki.Pki, *, is_whole: bool = True) -> None:
        """As kubelet replaces a Secret: certificate and key change together, by a rename. Otherwise the key stays."""
        for name, source in {"tls.crt": made.cert("server"), "tls.key": made.key("server")}.items():
            if is_whole or name == "tls.crt":
                shutil.copy(source, self.home / "new")
                (self.home / "new").rename(self.home / name)

    def dial(self) -> ssl.SSLSocket:
        context = ssl._create_unverified_context()
        return context.wrap_socket(socket.create_connection(("127.0.0.1", self.port), 10), server_hostname="localhost")

    def serial(self) -> int:
        with self.dial() as channel:
            return serial_of(channel.getpeercert(binary_form=True) or b"")

    def kernel(self) -> ClientConnection:
        origin: Any = f"https://{NOTEBOOK}"
        # The socket has TLS already.
        return connect(f"ws://{NOTEBOOK}/api/kernels/1/channels", sock=self.dial(), origin=origin, proxy=None)

    @contextmanager
    def under_load(self) -> Iterator[None]:
        is_over = threading.Event()
        visitor = threading.Thread(target=self._visit, args=(is_over,))
        visitor.start()
        try:
            yield
        finally:
            is_over.set()
            visitor.join()

    def _visit(self, is_over: threading.Event) -> None:
        """Each request on a new connection, as many visitors make them."""
        while not is_over.is_set():
            connection = http.client.HTTPSConnection(
                "127.0.0.1", self.port, timeout=10, context=ssl._create_unverified_context()
            )
            try:
                connection.request("GET", "/", headers={"Host": HOST})
                self.statuses[connection.getresponse().status] += 1
            except (OSError, http.client.HTTPException) as error:
                self.cut.append(repr(error))
            finally:
                connection.close()


def serial_of(der: bytes) -> int:
    return x509.load_der_x509_certificate(der).serial_number


def serial_in(made: pki.Pki) -> int:
    return x509.load_pem_x509_certificate(made.cert("server").read_bytes()).serial_number


@contextmanager
def running(services: dict[str, Any], home: Path, made: pki.Pki) -> Iterator[Served]:
    served = Served(free_port(), home, home / "log")
    served.put(made)
    web, doors, pod = (Recorder(name) for name in ("web", "doors", "pod"))
    with serving(web) as web_at, serving(doors) as doors_at, serving(pod) as pod_at, served.log.open("wb") as log:
        doors.pod = pod_at
        environment = {
            "PATH": f"{services['bin_dir']}:{os.environ['PATH']}",
            "HOME": str(home),
            "GATEWAY_ADDRESS": f"https://:{served.port}",
            "GATEWAY_TLS": f"tls {home / 'tls.crt'} {home / 'tls.key'}",
            "WEB_UPSTREAM": web_at,
            "DOORS_UPSTREAM": doors_at,
            "PORTAL_HOST": HOST,
            "NOTEBOOKS_DOMAIN": "notebooks.test",
        }
        with subprocess.Popen(["sh", DEPLOY / "gateway.sh"], env=environment, stdout=log, stderr=log) as process:
            try:
                until(lambda: answers(served), "gateway up")
                yield served
            finally:
                process.terminate()
                process.wait(30)


def answers(served: Served) -> bool:
    try:
        return bool(served.serial())
    except OSError:
        return False


def shows(served: Served, made: pki.Pki) -> bool:
    """A connection that is made in the moment in which the listener is replaced may be reset, as one of a visitor."""
    try:
        return served.serial() == serial_in(made)
    except ConnectionResetError:
        return False


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[pki.Pki, pki.Pki]:
    home = tmp_path_factory.mktemp("certificates")
    return pki.make(home / "old"), pki.make(home / "new")


@pytest.fixture
def served(services: dict[str, Any], tmp_path: Path, certificates: tuple[pki.Pki, pki.Pki]) -> Iterator[Served]:
    with running(services, tmp_path, certificates[0]) as found:
        yield found


def test_it_is_replaced_under_load(served: Served, certificates: tuple[pki.Pki, pki.Pki]) -> None:
    """No WebSocket is closed and no error is answered. A server of Go closes a connection whose first request it reads
    in the moment in which it ends, unread: at most as many as there are visitors.
    """
    new = certificates[1]
    with served.kernel() as kernel:
        assert json.loads(kernel.recv(10))["server"] == "pod"
        assert served.serial() == serial_in(certificates[0])
        with served.under_load():
            served.put(new)
            at = time.monotonic()
            until(lambda: shows(served, new), "the new certificate")
            assert time.monotonic() - at < WITHIN_S
            for number in range(3):
                kernel.send(f"after {number}")
                assert kernel.recv(10) == f"pod heard after {number}"
    assert set(served.statuses) == {200}
    assert len(served.cut) <= 1, served.cut


def test_files_that_do_not_fit_together_change_nothing(served: Served, certificates: tuple[pki.Pki, pki.Pki]) -> None:
    """They are used when the other one has come."""
    new = certificates[1]
    served.put(new, is_whole=False)
    until(lambda: "failed to reload config" in served.log.read_text(), "the reload failed")
    assert served.serial() == serial_in(certificates[0])
    served.put(new)
    until(lambda: shows(served, new), "the new certificate")
