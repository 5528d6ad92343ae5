"""Certificates and keys of an embedded control plane. They are created once per state directory."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from devcluster.client.kubeconfig import write_kubeconfig
from devcluster.processes.private_files import write_private

LIFETIME = dt.timedelta(days=3650)
ADDRESSES = ("127.0.0.1", "10.0.0.1")  # loopback, and the first address of the service range
NAMES = ("localhost", "kubernetes.default.svc", "kueue-visibility-server.kueue-system.svc")

# Client certificates: file name → (common name, organisation)
CLIENTS = {
    "admin": ("devcluster-admin", "system:masters"),
    "etcd-client": ("kube-apiserver", ""),
    "kubelet-client": ("kube-apiserver", ""),
}


@dataclass(frozen=True)
class Pki:
    directory: Path

    def file(self, name: str) -> Path:
        return self.directory / name

    def cert(self, name: str) -> Path:
        return self.file(f"{name}.crt")

    def key(self, name: str) -> Path:
        return self.file(f"{name}.key")

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode(self.cert("ca").read_bytes()).decode()


def make(directory: Path) -> Pki:
    """Creates the certificates if the directory does not exist. It appears by one rename, so it is never incomplete."""
    pki = Pki(directory)
    if directory.exists():
        return pki
    making = directory.with_name(f"{directory.name}.making-{os.getpid()}")
    making.mkdir(mode=0o700, parents=True)
    part = Pki(making)
    ca_key, ca = _authority("devcluster")
    _write(part, "ca", ca_key, ca)
    front_key, front = _authority("devcluster-request-headers")
    _write(part, "front-ca", front_key, front)
    _write(part, "front-client", *_issue("front-proxy-client", "", front_key, front, server=False))
    _write(part, "server", *_issue("kube-apiserver", "", ca_key, ca, server=True))
    for name, (common_name, organisation) in CLIENTS.items():
        _write(part, name, *_issue(common_name, organisation, ca_key, ca, server=False))
    _service_account_key(part)
    making.rename(directory)
    return pki


def issue(pki: Pki, names: Sequence[str]) -> tuple[str, str]:
    """Returns a server certificate for these host names and its key, both as PEM, signed by the cluster's authority."""
    ca_key = serialization.load_pem_private_key(pki.key("ca").read_bytes(), None)
    ca = x509.load_pem_x509_certificate(pki.cert("ca").read_bytes())
    assert isinstance(ca_key, ec.EllipticCurvePrivateKey)
    key, certificate = _issue(names[0], "", ca_key, ca, server=True, names=_names(names, ()))
    return certificate.public_bytes(serialization.Encoding.PEM).decode(), _pem(key)


def kubeconfig(path: Path, *, server: str, pki: Pki, token: str) -> Path:
    """Writes a kubeconfig that refers to no other file, with mode 0600. It is written as JSON, which is also valid
    YAML.
    """
    return write_kubeconfig(path, {"server": server, "certificate-authority-data": pki.ca_bundle}, {"token": token})


def _authority(name: str) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = _builder(subject, subject, key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(usage, critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return key, builder.sign(key, hashes.SHA256())


def _issue(
    common_name: str,
    organisation: str,
    ca_key: ec.EllipticCurvePrivateKey,
    ca: x509.Certificate,
    *,
    server: bool,
    names: Sequence[x509.GeneralName] = (),
) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organisation:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation))
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if server else [])]
    builder = _builder(x509.Name(attributes), ca.subject, key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    builder = builder.add_extension(issuer, critical=False)
    if server:
        builder = builder.add_extension(x509.SubjectAlternativeName(names or _names(NAMES, ADDRESSES)), critical=False)
    return key, builder.sign(ca_key, hashes.SHA256())


def _names(names: Sequence[str], addresses: Sequence[str]) -> list[x509.GeneralName]:
    return [
        *(x509.DNSName(name) for name in names),
        *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses),
    ]


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    began = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=5)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(began)
        .not_valid_after(began + LIFETIME)
    )


def _write(pki: Pki, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    _write_key(pki.key(name), key)
    pki.cert(name).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    write_private(path, _pem(key))


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()


def _service_account_key(pki: Pki) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    _write_key(pki.key("service-accounts"), key)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    pki.file("service-accounts.pub").write_bytes(public)
