"""An image registry that answers as registries do when they refuse, and serves images that nodes cannot use.

with Registry(address) as registry:
    registry.answers["team/limited"] = Answer(429, "TOOMANYREQUESTS")
    registry.trust(node_folder, "registry.real.node")
"""

from __future__ import annotations

import hashlib
import json
import ssl
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

_INDEX = "application/vnd.oci.image.index.v1+json"


@dataclass(frozen=True)
class Answer:
    """What the registry says to every request about one repository."""

    status: int
    code: str = ""
    message: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        return json.dumps({"errors": [{"code": self.code, "message": self.message}]}).encode()


class Registry:
    """Answers on a free port of `address`, inside the `with` block. Of an unknown repository it has no image."""

    def __init__(self, address: str, *, certificate: tuple[Path, Path] | None = None) -> None:
        """`certificate`: files of a certificate and its key, for HTTPS."""
        self.answers: dict[str, Answer] = {}
        self.indexes: dict[str, bytes] = {}
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.answer(self)

            do_HEAD = do_GET

            def log_message(self, *_arguments: Any) -> None:
                return

        self._server = ThreadingHTTPServer((address, 0), Handler)
        self._server.daemon_threads = True
        self._scheme = "http" if certificate is None else "https"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Registry:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"{self._scheme}://{host!s}:{port}"

    def trust(self, node_folder: Path, host: str, *, url: str = "") -> None:
        """Lets the node's containerd find this registry, or `url`, as `host`. It reads the file at each pull."""
        folder = node_folder / "registries" / host
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "hosts.toml").write_text(f'server = "{url or self.url}"\n')

    def only_for(self, repository: str, architecture: str) -> None:
        """An image that exists for this architecture alone."""
        manifest = {"mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 2, "digest": _digest(b"{}")}
        platform = {"architecture": architecture, "os": "linux"}
        index = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": [{**manifest, "platform": platform}]}
        self.indexes[repository] = json.dumps(index).encode()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        repository = request.path.removeprefix("/v2/").partition("/manifests/")[0].partition("/blobs/")[0]
        if index := self.indexes.get(repository):
            _send(request, 200, index, {"Content-Type": _INDEX, "Docker-Content-Digest": _digest(index)})
            return
        said = self.answers.get(repository) or Answer(404, "MANIFEST_UNKNOWN", "manifest unknown")
        _send(request, said.status, said.body, {"Content-Type": "application/json", **said.headers})


def _send(request: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
    request.send_response(status)
    for name, value in {**headers, "Content-Length": str(len(body))}.items():
        request.send_header(name, value)
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(body)


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
