"""How this process signs in at the API server: address, CA, and token or client certificate. The only file that imports
`kubernetes`.

Their files are replaced while the process runs: a service account's token every hour, a CA or a kubeconfig once in
years. What changed is used for new connections; open ones stay, since a watch or a followed log is no worse for it.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
import urllib3
import yaml
from kubernetes import client, config
from kubernetes.config import incluster_config

log = structlog.get_logger(__name__)
LOOK_EVERY_S = 5.0
# A prefork worker uses one connection, the watcher one per kind.
CONNECTIONS = 40
# What the library raises for a file that is no kubeconfig, or half of one.
UNREADABLE = (config.ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, AttributeError)

Stamps = dict[str, tuple[int, int, int] | None]


@dataclass(frozen=True)
class SignedIn:
    """`token`: the value of the header Authorization, "" with a client certificate. `ca_file`, `client_file`: "" if
    there are none.
    """

    pool: urllib3.PoolManager
    host: str
    token: str
    ca_file: str
    client_file: str


class Login:
    """Thread-safe. `kubeconfig`: a path, or "" for the pod's service account."""

    def __init__(self, kubeconfig: str) -> None:
        self._kubeconfig = kubeconfig
        self._lock = threading.Lock()
        self._look_at = 0.0
        self._read()

    def current(self) -> SignedIn:
        with self._lock:
            if time.monotonic() >= self._look_at:
                self._look_at = time.monotonic() + LOOK_EVERY_S
                if self._stamps != {path: _stamp(path) for path in self._stamps}:
                    self._read_again()
            # The library renews a token of a command that has expired.
            token = self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization") or ""
            found = self._configuration
            return SignedIn(self._pool, found.host, token, found.ssl_ca_cert or "", found.cert_file or "")

    def _read_again(self) -> None:
        try:
            self._read()
        except UNREADABLE as error:
            # What was read before may still work.
            log.warning("login_unreadable", error=type(error).__name__)
        else:
            log.info("login_changed", files=sorted(self._stamps))

    def _read(self) -> None:
        configuration = client.Configuration()
        configuration.retries = False
        configuration.connection_pool_maxsize = CONNECTIONS
        # Before the files are read: what changes meanwhile is seen the next time.
        stamps = {path: _stamp(path) for path in _files(self._kubeconfig)}
        if self._kubeconfig:
            config.load_kube_config(config_file=self._kubeconfig, client_configuration=configuration)
        else:
            config.load_incluster_config(client_configuration=configuration)
        self._pool: urllib3.PoolManager = client.ApiClient(configuration).rest_client.pool_manager
        self._configuration, self._stamps = configuration, stamps


def _files(kubeconfig: str) -> list[str]:
    if not kubeconfig:
        return [incluster_config.SERVICE_TOKEN_FILENAME, incluster_config.SERVICE_CERT_FILENAME]
    content: dict[str, Any] = yaml.safe_load(Path(kubeconfig).read_text()) or {}
    parts = [one.get("cluster") or {} for one in content.get("clusters") or []]
    parts += [one.get("user") or {} for one in content.get("users") or []]
    names = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
    named = {part[name] for part in parts for name in names if part.get(name)}
    return [kubeconfig, *(str(Path(kubeconfig).parent / one) for one in sorted(named))]


def _stamp(path: str) -> tuple[int, int, int] | None:
    """Another value after each write, and after a link to another file took its place."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
