"""Clients with exactly the rights that the deployment gives each process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from devcluster.client.kube import Api

Json = dict[str, Any]

DEADLINE_S = 60.0


class Impersonating(Api):
    """Impersonates another user with the administrator's rights: for identities that have no kubeconfig."""

    def __init__(self, kubeconfig: str, *, user: str, group: str = "system:authenticated") -> None:
        super().__init__(kubeconfig)
        self.user, self.group = user, group

    def _headers(self) -> dict[str, str]:
        return super()._headers() | {"Impersonate-User": self.user, "Impersonate-Group": self.group}


def namespace(name: str, **labels: str) -> Json:
    ours = {"app.kubernetes.io/managed-by": "gpu-portal", "pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": ours | labels}}


def wait_for_default_account(admin: Api, name: str) -> None:
    """Waits for the default ServiceAccount: pods are refused until the controller manager has created it."""
    for _kind, account in admin.watch("v1/serviceaccounts", namespace=name, timeout_s=DEADLINE_S):
        if account["metadata"].get("name") == "default":
            return
    raise AssertionError(f"no default ServiceAccount in {name} after {DEADLINE_S:.0f} s")


def until(holds: Callable[[], bool], what: str) -> None:
    deadline, pause = time.monotonic() + DEADLINE_S, threading.Event()
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {DEADLINE_S:.0f} s")
        pause.wait(0.05)
