"""How long certificates and tokens are valid: read from real servers and files, kept as rows."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from cluster.certificates.actions import read_certificates, record_certificates
from cluster.certificates.policy import is_to_renew
from cluster.certificates.queries import certificate_states
from cluster.certificates.validity import Validity
from cluster.client.kube import Kube
from cluster.models import Certificate
from devcluster.client.kubeconfig import write_kubeconfig
from devcluster.controlplane import pki

Name = Certificate.Name
NOW = datetime(2026, 6, 1, tzinfo=UTC)
pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> pki.Pki:
    return pki.make(tmp_path_factory.mktemp("pki") / "one")


@contextmanager
def listening(made: pki.Pki) -> Iterator[str]:
    """A server that only shakes hands."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.cert("server"), made.key("server"))
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    context.wrap_socket(listener.accept()[0], server_side=True).close()
                except ssl.SSLError:
                    continue
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def serial(path: Path) -> str:
    return f"{x509.load_pem_x509_certificate(path.read_bytes()).serial_number:x}"


def serials(kube: Kube) -> dict[str, str | None]:
    return {name.value: valid and valid.serial for name, valid in read_certificates(kube).items()}


def jwt(**claims: Any) -> str:
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.c2ln"


def test_each_is_read(made: pki.Pki, tmp_path: Path, settings: Any) -> None:
    files = {"client-certificate": str(made.cert("admin")), "client-key": str(made.key("admin"))}
    # Both CAs are called alike, and the other one signed nothing here.
    bundle = pki.make(tmp_path / "other").cert("ca").read_bytes() + made.cert("ca").read_bytes()
    (tmp_path / "ca.crt").write_bytes(bundle)
    with listening(made) as url:
        settings.PORTAL_URL = url
        server = {"server": url, "certificate-authority": "ca.crt"}
        kube = Kube(str(write_kubeconfig(tmp_path / "kubeconfig", server, files)))
        assert serials(kube) == {
            "portal": serial(made.cert("server")),
            "api-server": serial(made.cert("server")),
            "api-ca": serial(made.cert("ca")),
            "worker": serial(made.cert("admin")),
            "worker-token": None,
        }


def test_nothing_answers(made: pki.Pki, tmp_path: Path, settings: Any) -> None:
    settings.PORTAL_URL = "http://portal.test"
    server = {"server": "https://127.0.0.1:1", "certificate-authority-data": made.ca_bundle}
    kube = Kube(str(write_kubeconfig(tmp_path / "kubeconfig", server, {"token": "opaque"})))
    found = serials(kube)
    assert found.pop("api-ca") == serial(made.cert("ca"))
    assert set(found.values()) == {None}


@pytest.mark.parametrize(
    ("token", "is_read"),
    [
        (jwt(iat=1, exp=3600), True),
        (jwt(iat=1), False),
        (jwt(iat="x", exp=2), False),
        ("a.%%%.c", False),
        ("a.W10.c", False),
    ],
)
def test_the_token_of_a_service_account(tmp_path: Path, settings: Any, token: str, is_read: bool) -> None:
    settings.PORTAL_URL = "http://portal.test"
    kube = Kube(str(write_kubeconfig(tmp_path / "kubeconfig", {"server": "http://127.0.0.1:1"}, {"token": token})))
    valid = read_certificates(kube)[Name.TOKEN]
    assert (valid is not None) is is_read
    assert valid is None or valid.ends_at == datetime(1970, 1, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("lifetime_days", "left_days", "is_due"),
    [
        (3650, 31, False),
        (3650, 29, True),
        (90, 10, False),  # a renewal is tried when 30 are left
        (90, 8, True),
        (30, 6, False),  # OpenShift renews the API server's then
        (1 / 24, 0.2 / 24, False),  # kubelet renews a token then
        (1, -1, True),
    ],
)
def test_when_it_is_to_renew(lifetime_days: float, left_days: float, is_due: bool) -> None:
    ends_at = NOW + timedelta(days=left_days)
    assert is_to_renew(ends_at - timedelta(days=lifetime_days), ends_at, NOW) is is_due


def test_the_row_of_one_that_cannot_be_read_stays_for_a_day() -> None:
    valid = Validity(NOW, NOW + timedelta(days=90))
    record_certificates({Name.PORTAL: valid, Name.WORKER: None})
    record_certificates({Name.PORTAL: None, Name.API_SERVER: Validity(NOW, NOW + timedelta(days=9))})
    assert [one.name for one in certificate_states()] == ["certificate of the API server", "certificate of the portal"]
    renewed = Validity(NOW, NOW + timedelta(days=180))
    record_certificates({Name.PORTAL: renewed})
    assert Certificate.objects.get(name=Name.PORTAL).ends_at == renewed.ends_at

    Certificate.objects.filter(name=Name.API_SERVER).update(read_at=datetime.now(UTC) - timedelta(hours=25))
    record_certificates({})
    assert [one.name for one in certificate_states()] == ["certificate of the portal"]
