"""The Kubernetes API as the portal uses it.

`login` knows how to sign in; requests and responses are plain JSON dicts, since decoding a pod into the library's
models costs 80 KiB and 0.8 ms. `errors` maps responses to exceptions.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from urllib.parse import urlencode

import urllib3
from django.conf import settings
from django.db import InterfaceError, OperationalError
from urllib3.exceptions import HTTPError

from cluster.client.api_kinds import api_path
from cluster.client.errors import (
    ClusterRefused,
    ClusterUnavailable,
    Conflict,
    NotFound,
    ObserveOnly,
    OtherCluster,
    error_from_status,
    pause_s,
)
from cluster.client.fence import check_postponed_fence
from cluster.client.login import Login
from cluster.client.managed_fields import OWN_MANAGER, as_applied_patch
from cluster.client.secret_scrubbing import scrub_secret_values
from cluster.client.types import ApiObject
from cluster.observe_only.checked_writes import CHECKED
from cluster.observe_only.queries import is_observe_only
from cluster.replacement.server_check import ServerCheck

SYSTEM = "kube-system"
_OF_SERVER = api_path("Namespace", "", SYSTEM)


class Kube:
    """A connection pool with one identity. Thread-safe. Every call ends within settings.KUBE_TIMEOUT_S.

    After a 429 all calls fail at once until the time that the server named: it limits identities, not single calls.
    `check_write` is called before every request that is not a GET, and raises if it may not be sent; `server_check`
    before every request.
    """

    def __init__(
        self,
        kubeconfig: str = "",
        *,
        check_write: Callable[[str, str], None] | None = None,
        server_check: ServerCheck | None = None,
    ) -> None:
        self.login = Login(kubeconfig)
        self._check_write = check_write
        self._server_check = server_check
        self._pause_ends = 0.0

    def check_write(self, manifest: dict[str, Any]) -> None:
        """Raises what a POST of the manifest would raise without being sent."""
        kind, namespace, _name = _identify(manifest)
        if self._check_write is not None:
            self._check_write("POST", api_path(kind, namespace))

    # ---- one object ------------------------------------------------------------------------------------------

    def get(self, kind: str, *, name: str, namespace: str = "") -> ApiObject:
        return self._send("GET", api_path(kind, namespace, name))

    def create(self, manifest: dict[str, Any], *, dry_run: bool = False) -> ApiObject:
        """POST. Conflict when the name is taken."""
        kind, namespace, _name = _identify(manifest)
        return self._send("POST", api_path(kind, namespace), manifest, {"fieldManager": OWN_MANAGER}, dry_run=dry_run)

    def apply(self, manifest: dict[str, Any], *, uid: str = "", dry_run: bool = False) -> ApiObject:
        """Server-side apply. With `uid`: raises Conflict if that object is gone, ClusterRefused 422 if the name now has
        another uid.

        Forced: we own every field that we send; without force a user's edit would block the team permanently.
        """
        kind, namespace, name = _identify(manifest)
        body = manifest if not uid else {**manifest, "metadata": {**manifest["metadata"], "uid": uid}}
        query = {"fieldManager": OWN_MANAGER, "force": "true"}
        content_type = "application/apply-patch+yaml"
        return self._send(
            "PATCH", api_path(kind, namespace, name), body, query, content_type=content_type, dry_run=dry_run
        )

    def own_fields(self, answer: ApiObject) -> ApiObject:
        """Marks the fields of an object that we created by POST as applied.

        The API server records a POST as an `Update`, and server-side apply never removes a field that another entry
        holds, even one of the same manager: a quota key that we no longer send would stay permanently. The next apply
        removes it.
        """
        manifest = answer.body
        kind, namespace, name = _identify(manifest)
        for _attempt in range(3):
            patch = as_applied_patch(answer.managed_fields)
            if not patch:
                break
            path, content_type = api_path(kind, namespace, name), "application/json-patch+json"
            try:
                changed = self._send("PATCH", path, patch, {"fieldManager": OWN_MANAGER}, content_type=content_type)
            except ClusterRefused:
                # A controller wrote first, so the positions of the entries have changed.
                answer = ApiObject(self.look(manifest).body, answer.warnings)
            else:
                return ApiObject(changed.body, answer.warnings)
        return answer

    def take_out(self, answer: ApiObject, patch: list[dict[str, Any]]) -> ApiObject:
        """Sends a JSON patch made for this version of the object. Raises Conflict if it has changed since."""
        kind, namespace, name = _identify(answer.body)
        path, content_type = api_path(kind, namespace, name), "application/json-patch+json"
        changed = self._send("PATCH", path, patch, {"fieldManager": OWN_MANAGER}, content_type=content_type)
        return ApiObject(changed.body, answer.warnings)

    def relabel(self, kind: str, *, name: str, namespace: str, uid: str, labels: dict[str, str]) -> ApiObject:
        """Sets labels on the object with this uid. Raises Conflict if the name now has another uid."""
        return self.merge(kind, name=name, namespace=namespace, body={"metadata": {"uid": uid, "labels": labels}})

    def merge(
        self, kind: str, *, name: str, body: dict[str, Any], namespace: str = "", manager: str = OWN_MANAGER
    ) -> ApiObject:
        """Sends a merge patch. A uid or resourceVersion in its metadata is a condition: raises Conflict otherwise.

        `manager`: another one for fields that an apply must not remove.
        """
        query, content_type = {"fieldManager": manager}, "application/merge-patch+json"
        return self._send("PATCH", api_path(kind, namespace, name), body, query, content_type=content_type)

    def look(self, manifest: dict[str, Any]) -> ApiObject:
        """Reads the owner of an object that we may not read: an empty apply as another manager, as a dry run."""
        kind, namespace, name = _identify(manifest)
        metadata = {key: value for key, value in manifest["metadata"].items() if key in ("name", "namespace")}
        empty = {"apiVersion": manifest["apiVersion"], "kind": kind, "metadata": metadata}
        query = {"fieldManager": f"{OWN_MANAGER}-look"}
        return self._send(
            "PATCH",
            api_path(kind, namespace, name),
            empty,
            query,
            content_type="application/apply-patch+yaml",
            dry_run=True,
        )

    def delete(self, kind: str, *, name: str, namespace: str = "", uid: str = "", grace_s: int | None = None) -> None:
        """Deletes the object with this uid in the background. Gone (404) or another uid (409) counts as success."""
        body: dict[str, Any] = {"propagationPolicy": "Background"}
        if uid:
            body["preconditions"] = {"uid": uid}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        try:
            self._send("DELETE", api_path(kind, namespace, name), body)
        except (NotFound, Conflict):
            return

    # ---- lists and watches -----------------------------------------------------------------------------------

    def list_page(
        self,
        path: str,
        *,
        limit: int = 500,
        continue_token: str = "",
        resource_version: str = "",
        field_selector: str = "",
    ) -> dict[str, Any]:
        """Returns one page of a list, raw. Raises Gone if the continue token expired."""
        query: dict[str, Any] = {"limit": limit}
        if continue_token:
            query["continue"] = continue_token
        elif resource_version:
            query |= {"resourceVersion": resource_version, "resourceVersionMatch": "NotOlderThan"}
        if field_selector:
            query["fieldSelector"] = field_selector
        # A list of thousands of pods may take longer than a single object; a list with limit 1 only tests the
        # connection.
        return self._send("GET", path, query=query, timeout_s=60 if limit > 1 else None).body

    def watch_lines(
        self,
        path: str,
        *,
        resource_version: str,
        timeout_s: float,
        field_selector: str = "",
        ends_after_s: float | None = None,
    ) -> Iterator[bytes]:
        """Yields raw JSON lines of one watch connection with bookmarks. Ends when the server ends it, which it is asked
        to do after `ends_after_s`.

        `timeout_s` of silence raises ClusterUnavailable. Raises Gone if `resource_version` is too old.
        """
        query: dict[str, Any] = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": resource_version}
        if field_selector:
            query["fieldSelector"] = field_selector
        if ends_after_s is not None:
            query["timeoutSeconds"] = max(1, round(ends_after_s))
        response = self._open("GET", path, None, query, timeout_s=timeout_s, stream=True)
        try:
            if response.status != 200:
                raise self._error(response, response.read(), path)
            rest = b""
            for chunk in response.stream(65536, decode_content=True):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from lines
        except HTTPError as error:
            self._forget_server()
            raise ClusterUnavailable(f"The watch of {path} was interrupted: {type(error).__name__}.") from error
        finally:
            # Not returned to the pool: the rest of a half-read watch would be read as the next response.
            response.close()

    def open_log(
        self, *, namespace: str, pod: str, container: str, follow: bool, tail_lines: int, silence_s: float
    ) -> urllib3.BaseHTTPResponse:
        """Returns a pod's log as a stream. The caller closes it; `shutdown` ends a read that blocks another thread."""
        query: dict[str, Any] = {"container": container, "tailLines": tail_lines}
        if follow:
            query["follow"] = "true"
        path = f"{api_path('Pod', namespace, pod)}/log"
        response = self._open("GET", path, None, query, timeout_s=silence_s, stream=True)
        if response.status != 200:
            data = response.read()
            response.close()
            raise self._error(response, data, path)
        return response

    def raw(self, path: str, *, query: dict[str, Any] | None = None) -> dict[str, Any]:
        """GET any path, for example the visibility API's pending workloads."""
        return self._send("GET", path, query=query).body

    def may(self, verb: str, *, group: str, resource: str, namespace: str = "") -> bool:
        """Whether this identity has a right; without a namespace: in all of them. "*" stands for any."""
        attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = self._send("POST", "apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
        return bool(answer.body["status"]["allowed"])

    def server_uid(self, *, by_list: bool = False) -> str:
        """Returns what tells this cluster from every other one: the uid of its namespace kube-system. `by_list`: with
        the right to list namespaces instead of that to get one. Raises ClusterRefused.
        """
        if not by_list:
            return str(self._send("GET", _OF_SERVER, is_checked=False).body["metadata"]["uid"])
        query = {"fieldSelector": f"metadata.name={SYSTEM}", "limit": 1}
        found = self._send("GET", api_path("Namespace"), query=query, is_checked=False).body.get("items")
        if not found:
            raise NotFound(404, "NotFound", f"It has no namespace {SYSTEM}.")
        return str(found[0]["metadata"]["uid"])

    # ---- transport -------------------------------------------------------------------------------------------

    def _send(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | list[dict[str, Any]] | None = None,
        query: dict[str, Any] | None = None,
        *,
        content_type: str = "application/json",
        dry_run: bool = False,
        timeout_s: float | None = None,
        is_checked: bool = True,
    ) -> ApiObject:
        if dry_run:
            query = {**(query or {}), "dryRun": "All"}
        response = self._open(
            method,
            path,
            body,
            query,
            content_type=content_type,
            timeout_s=timeout_s or settings.KUBE_TIMEOUT_S,
            is_checked=is_checked,
        )
        if response.status >= 300:
            raise self._error(response, response.data, path, body)
        warnings = [scrub_secret_values(_warning_text(value), body) for value in response.headers.getlist("Warning")]
        return ApiObject(json.loads(response.data), warnings)

    def _open(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | list[dict[str, Any]] | None,
        query: dict[str, Any] | None,
        *,
        timeout_s: float,
        content_type: str = "application/json",
        stream: bool = False,
        is_checked: bool = True,
    ) -> urllib3.BaseHTTPResponse:
        if (left_s := self._pause_ends - time.monotonic()) > 0:
            raise ClusterUnavailable("The API server asked for fewer requests.", after_s=left_s)
        login = self.login.current()
        if is_checked and (check := self._server_check) is not None:
            require_own_cluster(check, login.pool, lambda: self.server_uid(by_list=check.records))
        # After it: this sends a write of its own, the check of the fence.
        if method != "GET" and self._check_write is not None and not CHECKED.get():
            self._check_write(method, path)
        url = f"{login.host}/{path}"
        if query:
            url += "?" + urlencode(query)
        headers = {"Accept": "application/json", "User-Agent": "gpu-portal"}
        if login.token:
            headers["Authorization"] = login.token
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = json.dumps(body, separators=(",", ":")).encode()
        try:
            return login.pool.request(
                method,
                url,
                body=data,
                headers=headers,
                timeout=urllib3.Timeout(connect=3, read=timeout_s),
                preload_content=not stream,
                retries=False,
            )
        except HTTPError as error:
            self._forget_server()
            raise ClusterUnavailable(
                f"The API server did not respond to {method} {path}: {type(error).__name__}."
            ) from error

    def _forget_server(self) -> None:
        if self._server_check is not None:
            self._server_check.forget()

    def _error(self, response: urllib3.BaseHTTPResponse, data: bytes, path: str, sent: Any = None) -> Exception:
        after_s = pause_s(response.headers.get("Retry-After"))
        if response.status == 429:
            self._pause_ends = max(self._pause_ends, time.monotonic() + after_s)
        return error_from_status(response.status, data, path, sent, after_s=after_s)


@cache
def connect(kubeconfig: str = "", *, is_watcher: bool = False) -> Kube:
    """The process's own identity: PORTAL_KUBECONFIG, or the pod's service account. One pool per process, and of one
    cluster: `cluster.apply.own_cluster` keeps rows of another one from it. Asks nothing of a cluster that is not the
    one of the rows. Sends no write while the cluster is observed only, nor before the fence was checked in it.
    """
    path = kubeconfig or settings.PORTAL_KUBECONFIG
    server = ServerCheck(records=is_watcher)

    def check_write(method: str, address: str) -> None:
        if is_observe_only():
            raise ObserveOnly(method, address)
        check_postponed_fence(lambda: server.reached, lambda: Kube(path, server_check=server))

    return Kube(path, check_write=check_write, server_check=server)


@cache
def connect_for_logs() -> Kube:
    """The same for the doors, which may read logs of team namespaces and nothing else, so not which cluster it is."""
    return Kube(settings.PORTAL_KUBECONFIG, check_write=_refuse_write)


def _refuse_write(method: str, address: str) -> None:
    raise ObserveOnly(method, address)


def require_own_cluster(check: ServerCheck, pool: object, ask: Callable[[], str]) -> None:
    """Raises OtherCluster, or ClusterUnavailable if server or database do not say it."""
    try:
        is_other = check.is_other(pool, ask)
    except ClusterRefused as refused:
        # A new server has neither rights nor namespaces in its first seconds.
        raise ClusterUnavailable(f"The API server does not say which cluster it is of: {refused.text}") from refused
    except (OperationalError, InterfaceError) as error:
        raise ClusterUnavailable("The database does not say which cluster the rows describe.") from error
    if is_other:
        raise OtherCluster


def _identify(manifest: dict[str, Any]) -> tuple[str, str, str]:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]


def _warning_text(header: str) -> str:
    """`299 - "would violate PodSecurity …"` → the quoted text."""
    return header.partition('"')[2].rpartition('"')[0] or header
