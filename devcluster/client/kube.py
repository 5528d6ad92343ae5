"""A small client for the Kubernetes API: plain JSON in and out, standard library only.

The portal has its own client (`cluster.client.kube`). This one is for set-up, simulated hardware, and tests that
observe the cluster independently of the portal. A resource is spelled `<group version>/<plural>`: `v1/pods`,
`batch/v1/jobs`, `kueue.x-k8s.io/v1beta2/workloads`.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from devcluster.client.kubeconfig import read_kubeconfig, tls_context
from devcluster.client.types import Json

Items = list[Json]  # an alias: inside the class, `list` is the method

FIELD_MANAGER = "devcluster"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"  # JSON is YAML
# The API server closes idle connections, and a request on a closed connection fails. A connection that was idle for
# longer than this is not used again, mainly because a POST cannot be repeated safely.
IDLE_S = 5.0


class ApiError(Exception):
    """The API server answered with a status of 400 or more, or sent an ERROR event. `body` is its Status object."""

    def __init__(self, status: int, body: Json) -> None:
        self.status = status
        self.body = body
        self.reason = str(body.get("reason", ""))
        super().__init__(f"{status} {self.reason}: {body.get('message', '')}")


class Watch:
    """An open watch: iterates over (type, object). An ERROR event (for example 410) is raised as ApiError."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._socket = connection.sock  # http.client drops it if the server will close the connection
        self._response = connection.getresponse()
        self._stopped = False
        if self._response.status != 200:
            raise ApiError(self._response.status, _decode(self._response.read()))

    def __iter__(self) -> Iterator[tuple[str, Json]]:
        try:
            while line := self._response.readline():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ApiError(int(event["object"].get("code", 500)), event["object"])
                yield event["type"], event["object"]
        except (OSError, http.client.HTTPException, ValueError):  # ValueError: an incomplete last line
            if not self._stopped:
                raise
        finally:
            self._connection.close()

    def stop(self) -> None:
        """Ends the iteration. May be called from another thread."""
        self._stopped = True
        with suppress(OSError):  # the connection is already closed
            self._socket.shutdown(socket.SHUT_RDWR)


class _Kept:
    """The kept-alive connection of one thread. It is closed when the thread ends."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self.connection = connection
        self.pid = os.getpid()
        self.used_at = time.monotonic()

    def __del__(self) -> None:
        self.connection.close()


class Api:
    """Calls one API server with the identity of one kubeconfig. May be shared between threads: each thread has its own
    kept-alive connection.
    """

    def __init__(self, kubeconfig: str | Path, *, timeout_s: float = 10.0) -> None:
        self.kubeconfig = Path(kubeconfig)
        self.timeout_s = timeout_s
        config = read_kubeconfig(self.kubeconfig)
        self.server = urllib.parse.urlsplit(config["cluster"]["server"])
        self.token = config["user"].get("token", "")
        self._tls = tls_context(config) if self.server.scheme == "https" else None
        self._local = threading.local()
        self._discovered: dict[str, dict[str, Json]] = {}

    # reading

    def get(self, resource: str, name: str, *, namespace: str = "") -> Json:
        return self.request("GET", path_of(resource, name, namespace=namespace))

    def find(self, resource: str, name: str, *, namespace: str = "") -> Json | None:
        """Like `get`, but returns None if there is no such object."""
        try:
            return self.get(resource, name, namespace=namespace)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(self, resource: str, *, namespace: str = "", labels: str = "", fields: str = "") -> Items:
        return list(self.list_page(resource, namespace=namespace, labels=labels, fields=fields)["items"])

    def list_page(self, resource: str, *, namespace: str = "", labels: str = "", fields: str = "") -> Json:
        """Returns the whole response: `items`, and `metadata.resourceVersion`, from which a watch can continue."""
        params = _without_empty({"labelSelector": labels, "fieldSelector": fields})
        return self.request("GET", path_of(resource, namespace=namespace), params=params)

    def watch(
        self,
        resource: str,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        resource_version: str = "",
        timeout_s: float = 60.0,
    ) -> Watch:
        """Opens a watch. It ends when the server ends it after `timeout_s`, or when `Watch.stop` is called. Its
        iteration includes BOOKMARK events.
        """
        params = _without_empty({"labelSelector": labels, "fieldSelector": fields, "resourceVersion": resource_version})
        params |= {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(max(1, int(timeout_s)))}
        connection = self.connect(timeout_s + 10)
        try:
            connection.request("GET", _with(path_of(resource, namespace=namespace), params), headers=self._headers())
            opened = Watch(connection)
        except BaseException:
            connection.close()
            raise
        return opened

    # writing

    def create(self, obj: Json, *, namespace: str = "", dry_run: bool = False) -> Json:
        params = {"dryRun": "All"} if dry_run else None
        return self.request("POST", self._path_for(obj, namespace=namespace, with_name=False), obj, params=params)

    def apply(self, obj: Json, *, namespace: str = "", field_manager: str = FIELD_MANAGER) -> Json:
        """Server-side apply with force: takes over fields that another manager owns."""
        params = {"fieldManager": field_manager, "force": "true"}
        return self.request("PATCH", self._path_for(obj, namespace=namespace), obj, params=params, content_type=APPLY)

    def patch(
        self,
        resource: str,
        name: str,
        body: Json,
        *,
        namespace: str = "",
        subresource: str = "",
        content_type: str = MERGE,
    ) -> Json:
        path = path_of(resource, name, namespace=namespace, subresource=subresource)
        return self.request("PATCH", path, body, content_type=content_type)

    def patch_status(self, resource: str, name: str, status: Json, *, namespace: str = "") -> Json:
        """Merges `status` (JSON merge patch): lists replace the old lists, and keys with the value None are removed."""
        return self.patch(resource, name, {"status": status}, namespace=namespace, subresource="status")

    def delete(
        self,
        resource: str,
        name: str,
        *,
        namespace: str = "",
        grace_s: int | None = None,
        propagation: str = "Background",
        uid: str = "",
    ) -> None:
        """Does nothing if the object does not exist. With `uid`, an object of the same name with another uid is not
        deleted (409).
        """
        body: Json = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            self.request("DELETE", path_of(resource, name, namespace=namespace), body)
        except ApiError as error:
            if error.status != 404:
                raise

    # HTTP

    def request(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        params: dict[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Json:
        status, data = self.raw(method, path, body, params=params, content_type=content_type)
        answer = _decode(data)
        if status >= 400:
            raise ApiError(status, answer)
        return answer

    def raw(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        params: dict[str, str] | None = None,
        content_type: str = "application/json",
    ) -> tuple[int, bytes]:
        """Returns (status, body) of any path, without parsing: for logs, health checks and metrics. If a kept-alive
        connection was lost, the call is repeated once on a new one, except for POST.
        """
        payload = None if body is None else json.dumps(body).encode()
        headers = self._headers() | ({} if payload is None else {"Content-Type": content_type})
        kept, reused = self._kept_alive()
        connection = kept.connection
        try:
            connection.request(method, _with(path, params or {}), body=payload, headers=headers)
            response = connection.getresponse()
            data = response.read()
        except (http.client.HTTPException, OSError):
            self._local.kept = None
            connection.close()
            if reused and method != "POST":
                return self.raw(method, path, body, params=params, content_type=content_type)
            raise
        kept.used_at = time.monotonic()
        return response.status, data

    def _kept_alive(self) -> tuple[_Kept, bool]:
        kept: _Kept | None = getattr(self._local, "kept", None)
        # A forked child process must not use its parent's socket.
        if kept is not None and kept.pid == os.getpid() and time.monotonic() - kept.used_at < IDLE_S:
            return kept, True
        kept = self._local.kept = _Kept(self.connect(self.timeout_s))
        return kept, False

    def connect(self, timeout_s: float) -> http.client.HTTPConnection:
        host, port = self.server.hostname or "127.0.0.1", self.server.port
        if self._tls is None:
            return http.client.HTTPConnection(host, port or 80, timeout=timeout_s)
        return http.client.HTTPSConnection(host, port or 443, timeout=timeout_s, context=self._tls)

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": "devcluster"}
        return headers | {"Authorization": f"Bearer {self.token}"} if self.token else headers

    def _path_for(self, obj: Json, *, namespace: str = "", with_name: bool = True) -> str:
        version, kind = obj["apiVersion"], obj["kind"]
        known = self._kinds(version).get(kind) or self._kinds(version, again=True).get(kind)
        if known is None:
            raise LookupError(f"The cluster serves no {kind} in {version}.")
        namespace = (namespace or obj["metadata"].get("namespace", "default")) if known["namespaced"] else ""
        name = obj["metadata"]["name"] if with_name else ""
        return path_of(f"{version}/{known['name']}", name, namespace=namespace)

    def _kinds(self, version: str, *, again: bool = False) -> dict[str, Json]:
        """Returns kind → APIResource of one API version. `again` reads discovery again, because CRDs may have been
        added.
        """
        if again or version not in self._discovered:
            found = self.request("GET", f"/{_root(version)}")["resources"]
            self._discovered[version] = {r["kind"]: r for r in found if "/" not in r["name"]}
        return self._discovered[version]


def path_of(resource: str, name: str = "", *, namespace: str = "", subresource: str = "") -> str:
    version, _, plural = resource.rpartition("/")
    parts = [_root(version), *(["namespaces", namespace] if namespace else []), plural, name, subresource]
    return "/" + "/".join(part for part in parts if part)


def _root(version: str) -> str:
    return f"apis/{version}" if "/" in version else f"api/{version}"


def _with(path: str, params: dict[str, str]) -> str:
    return f"{path}?{urllib.parse.urlencode(params)}" if params else path


def _without_empty(params: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in params.items() if value}


def _decode(data: bytes) -> Json:
    try:
        answer = json.loads(data)
    except ValueError:
        answer = None
    return answer if isinstance(answer, dict) else {"message": data.decode(errors="replace")}
