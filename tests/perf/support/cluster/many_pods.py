"""Creates as many pods in the real API server as a benchmark needs, in seconds.

One pod is created through the API server, and its stored value is written to etcd many times under names and uids of
the same length. The API server lists and watches these pods like any others. Only their creation bypasses it, which
would take minutes for so many on two cores.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from devcluster.client.kube import Api, ApiError

# etcd's default limit for one transaction.
AT_ONCE = 100
FIRST = "pod-00000"
MADE_WITHIN_S = 60.0
SERVED_WITHIN_S = 180.0
Raw = dict[str, Any]


@contextlib.contextmanager
def many_pods(admin: Api, state: Path, namespace: str, *, number: int) -> Iterator[int]:
    """Creates `number` pods and removes them at the end. Yields the size of one as JSON, in bytes. A scheduling gate
    keeps the scheduler and kubelets off them.
    """
    etcd = Etcd(state)
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    key = f"/registry/pods/{namespace}/"
    try:
        pod = _first(admin, namespace)
        stored, uid = etcd.read(key + FIRST), str(pod["metadata"]["uid"])
        for begin in range(1, number, AT_ONCE):
            etcd.write({key + _name(n): _as(stored, uid, n) for n in range(begin, min(begin + AT_ONCE, number))})
        _until_served(admin, namespace)
        yield len(json.dumps(pod))
    finally:
        etcd.delete(key)
        with contextlib.suppress(ApiError):
            admin.delete("v1/namespaces", namespace)


def _name(number: int) -> str:
    return f"{FIRST[:-5]}{number:05}"


def _as(stored: bytes, uid: str, number: int) -> bytes:
    return stored.replace(FIRST.encode(), _name(number).encode()).replace(
        uid.encode(), (uid[:-12] + f"{number:012}").encode()
    )


def _first(admin: Api, namespace: str) -> Raw:
    """A pod as large as real pods."""
    environment = [{"name": f"SETTING_{n}", "value": "a value as people write them, " * 2} for n in range(20)]
    ports = [{"containerPort": 8000 + n, "name": f"port-{n}"} for n in range(4)]
    container = {
        "name": "main",
        "image": "registry.example.org/team/training:2026-11-21",
        "command": ["python", "-m", "train", "--config", "/etc/train/config.yaml"],
        "env": environment,
        "ports": ports,
        "resources": {"requests": {"cpu": "4", "memory": "16Gi"}, "limits": {"cpu": "4", "memory": "16Gi"}},
    }
    labels = {f"example.org/label-{n}": f"value-{n}" for n in range(6)}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": FIRST, "namespace": namespace, "labels": labels},
        "spec": {
            "schedulingGates": [{"name": "example.org/bench"}],
            "containers": [container],
            "automountServiceAccountToken": False,
        },
    }
    deadline, pause = time.monotonic() + MADE_WITHIN_S, threading.Event()
    while True:
        try:
            return admin.create(pod)
        except ApiError as error:
            # The namespace's service account is created a moment later.
            if error.status != 403 or time.monotonic() > deadline:
                raise
        pause.wait(0.1)


def _until_served(admin: Api, namespace: str) -> None:
    """Waits until the API server's watch cache, which serves watches, has them."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    now = admin.request("GET", path, params={"limit": "1"})["metadata"]["resourceVersion"]
    known = {"limit": "1", "resourceVersion": now, "resourceVersionMatch": "NotOlderThan"}
    deadline, pause = time.monotonic() + SERVED_WITHIN_S, threading.Event()
    while True:
        try:
            admin.request("GET", path, params=known)
            return
        except ApiError as error:
            if error.status not in (429, 504) or time.monotonic() > deadline:
                raise
        pause.wait(0.5)


class Etcd:
    """Its JSON gateway: keys and values are base64."""

    def __init__(self, state: Path) -> None:
        pki, ports = state / "pki", json.loads((state / "ports.json").read_text())
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(str(pki / "etcd-client.crt"), str(pki / "etcd-client.key"))
        self._connection = http.client.HTTPSConnection("127.0.0.1", ports["etcd"], context=context, timeout=60)

    def read(self, key: str) -> bytes:
        [found] = self._ask("range", {"key": _text(key.encode())})["kvs"]
        return base64.b64decode(found["value"])

    def write(self, values: dict[str, bytes]) -> None:
        puts = [{"requestPut": {"key": _text(key.encode()), "value": _text(value)}} for key, value in values.items()]
        self._ask("txn", {"success": puts})

    def delete(self, prefix: str) -> None:
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        self._ask("deleterange", {"key": _text(prefix.encode()), "range_end": _text(end.encode())})

    def _ask(self, what: str, body: Raw) -> Raw:
        self._connection.request("POST", f"/v3/kv/{what}", json.dumps(body))
        response = self._connection.getresponse()
        data = response.read()
        assert response.status == 200, f"etcd answered {response.status} to {what}: {data[:300]!r}"
        found: Raw = json.loads(data)
        return found


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
