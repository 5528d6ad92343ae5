"""Reads how long certificates and tokens are valid: those that the portal and the API server serve, and those with
which this process signs in. Nothing is verified: an expired certificate has a date too.
"""

from __future__ import annotations

import base64
import binascii
import json
import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from cluster.client.login import SignedIn

ANSWER_WITHIN_S = 3.0


@dataclass(frozen=True)
class Validity:
    """`serial`: in hexadecimal, to tell two certificates apart; "" of a token."""

    begins_at: datetime
    ends_at: datetime
    serial: str = ""


def served_at(url: str) -> x509.Certificate | None:
    """None without TLS, or if nothing answers."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        return None
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((parts.hostname, parts.port or 443), ANSWER_WITHIN_S) as connection,
            context.wrap_socket(connection, server_hostname=parts.hostname) as channel,
        ):
            return x509.load_der_x509_certificate(channel.getpeercert(binary_form=True) or b"")
    except (OSError, ValueError):
        return None


def validity(certificate: x509.Certificate | None) -> Validity | None:
    if certificate is None:
        return None
    begins_at, ends_at = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return Validity(begins_at, ends_at, f"{certificate.serial_number:x}")


def client_certificate(login: SignedIn) -> x509.Certificate | None:
    return next(iter(_in_file(login.client_file)), None)


def authority(login: SignedIn, server: x509.Certificate | None) -> x509.Certificate | None:
    """The CA that signed the server's certificate. If it is not in the file, the one that is valid for longest: during
    a change the file has the old and the new one.
    """
    bundle = _in_file(login.ca_file)
    signers = [one for one in bundle if server is not None and _has_signed(one, server)]
    return max(signers or bundle, key=lambda one: one.not_valid_after_utc, default=None)


def token_validity(login: SignedIn) -> Validity | None:
    """None if it is no token of a service account, which says when it ends."""
    parts = login.token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
        begins, ends = float(claims["iat"]), float(claims["exp"])
    except (binascii.Error, ValueError, TypeError, KeyError):
        return None
    return Validity(datetime.fromtimestamp(begins, UTC), datetime.fromtimestamp(ends, UTC))


def _in_file(path: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(Path(path).read_bytes()) if path else []
    except (OSError, ValueError):
        return []


def _has_signed(issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
