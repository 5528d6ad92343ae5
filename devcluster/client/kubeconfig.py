"""Reads and writes kubeconfigs, and creates the TLS context for one."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from pathlib import Path

from devcluster.client.types import Json
from devcluster.processes.private_files import write_private


def read_kubeconfig(path: Path) -> Json:
    """Returns {"cluster": …, "user": …, "directory": …} of the current context. A token from `tokenFile` is read."""
    text = path.read_text()
    try:
        config = json.loads(text)
    except ValueError:
        import yaml  # not in the standard library; the kubeconfigs that this package writes are JSON

        config = yaml.safe_load(text)

    def named(section: str, name: str, inner: str) -> Json:
        return next((entry[inner] or {} for entry in config.get(section, []) if entry["name"] == name), {})

    context = named("contexts", config["current-context"], "context")
    cluster = named("clusters", context["cluster"], "cluster")
    user = dict(named("users", context.get("user", ""), "user"))
    if "tokenFile" in user:
        user["token"] = (path.parent / user["tokenFile"]).read_text().strip()
    return {"cluster": cluster, "user": user, "directory": path.parent}


def tls_context(config: Json) -> ssl.SSLContext:
    cluster, user, directory = config["cluster"], config["user"], config["directory"]
    if cluster.get("insecure-skip-tls-verify"):
        context = ssl._create_unverified_context()
    else:
        authority = _material(cluster, "certificate-authority", directory)
        context = ssl.create_default_context(cadata=authority or None)
    certificate, key = (_material(user, field, directory) for field in ("client-certificate", "client-key"))
    if certificate and key:
        # The ssl module reads client certificates only from files. This file exists only during the call, and only this
        # user can read it.
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
            pem.write(certificate + "\n" + key)
            pem.flush()
            context.load_cert_chain(pem.name)
    return context


def _material(section: Json, field: str, directory: Path) -> str:
    """Returns the PEM text of a kubeconfig field: inline as `<field>-data`, or from a file whose path is relative to
    the kubeconfig. "" if neither is set.
    """
    if inline := section.get(f"{field}-data"):
        return base64.b64decode(inline).decode()
    return (directory / section[field]).read_text() if field in section else ""


def write_kubeconfig(path: Path, cluster: dict[str, object], user: dict[str, str]) -> Path:
    name = "devcluster"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    write_private(path, json.dumps(content, indent=1))
    return path
