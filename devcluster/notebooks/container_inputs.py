"""Command, environment and volumes of a notebook's container, from its pod and the objects that the pod refers to."""

from __future__ import annotations

import base64
import re
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from devcluster.client.kube import Api
from devcluster.client.types import Json

DEFAULT_COMMAND = ["jupyter", "lab"]
REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


class MissingReference(Exception):
    """An object that the container needs does not exist. `reason`: of the waiting container. `event`: the reason of the
    event. Both are the kubelet's.
    """

    def __init__(self, reason: str, message: str, *, event: str) -> None:
        super().__init__(message)
        self.reason, self.message, self.event = reason, message, event


@dataclass(frozen=True)
class ContainerInputs:
    argv: list[str]
    environment: dict[str, str]


def read(api: Api, pod: Json, container: Json, *, pod_ip: str) -> ContainerInputs:
    """Raises MissingReference while a Secret or ConfigMap does not exist."""
    environment = _environment(api, pod, container, pod_ip=pod_ip)
    words = [*container.get("command", []), *container.get("args", [])]
    if not container.get("command"):  # the image's entry point starts JupyterLab
        words = words if words and not words[0].startswith("-") else [*DEFAULT_COMMAND, *words]
    return ContainerInputs(argv=[_expand(word, environment) for word in words], environment=environment)


@dataclass(frozen=True)
class Mount:
    """A PersistentVolumeClaim and where it is mounted: `below` is the path relative to the home directory, "" for the
    home directory itself.
    """

    claim: Json
    below: str


def mounts(api: Api, pod: Json) -> list[Mount]:
    """Returns the claims that are mounted at or below the container's home directory. Other mounts are ignored: their
    paths are paths of the image, which this machine may not have.

    The home directory is the working directory or, if that is not set, the first mount of a claim. Raises
    MissingReference while a claim does not exist.
    """
    spec, namespace = pod["spec"], pod["metadata"]["namespace"]
    claims = {
        volume["name"]: volume["persistentVolumeClaim"]["claimName"]
        for volume in spec.get("volumes", [])
        if "persistentVolumeClaim" in volume
    }
    container = spec["containers"][0]
    claimed = [mount for mount in container.get("volumeMounts", []) if mount["name"] in claims]
    if not claimed:
        return []
    home = PurePosixPath(container.get("workingDir") or claimed[0]["mountPath"])
    found = []
    for mount in claimed:
        path = PurePosixPath(mount["mountPath"])
        if path.is_relative_to(home):
            claim = _claim(api, claims[mount["name"]], mount["name"], namespace=namespace)
            found.append(Mount(claim, "" if path == home else str(path.relative_to(home))))
    return sorted(found, key=lambda mount: mount.below)


def _claim(api: Api, name: str, volume: str, *, namespace: str) -> Json:
    if found := api.find("v1/persistentvolumeclaims", name, namespace=namespace):
        return found
    which = f"volumes=[{volume}]"
    text = (
        f"Unable to attach or mount volumes: unmounted {which}, unattached volumes=[], failed to process {which}: "
        f"error processing PVC {namespace}/{name}: failed to fetch PVC from API server: "
        f'persistentvolumeclaims "{name}" not found'
    )
    raise MissingReference("ContainerCreating", text, event="FailedMount")


def program(argv: list[str], path: str) -> str | None:
    """Returns the path of the command's program on this machine, or None. An absolute path that exists only in the
    image is searched by its last part.
    """
    return shutil.which(argv[0], path=path) or shutil.which(Path(argv[0]).name, path=path)


def _environment(api: Api, pod: Json, container: Json, *, pod_ip: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for source in container.get("envFrom", []):
        for kind in ("configMapRef", "secretRef"):
            if kind in source:
                data = _data(api, pod, kind.removesuffix("Ref"), source[kind])
                values |= {source.get("prefix", "") + key: value for key, value in data.items()}
    for variable in container.get("env", []):
        value = _value(api, pod, variable, pod_ip=pod_ip, container=container)
        if value is not None:
            values[variable["name"]] = _expand(value, values)
    return values


def _value(api: Api, pod: Json, variable: Json, *, pod_ip: str, container: Json) -> str | None:
    """Returns None if an optional reference is missing: the variable is then not set."""
    source = variable.get("valueFrom")
    if source is None:
        return str(variable.get("value", ""))
    for kind in ("configMap", "secret"):
        if reference := source.get(f"{kind}KeyRef"):
            data = _data(api, pod, kind, reference)
            if reference["key"] not in data and not reference.get("optional"):
                where = f"{kind.title().replace('map', 'Map')} {pod['metadata']['namespace']}/{reference['name']}"
                text = f"couldn't find key {reference['key']} in {where}"
                raise MissingReference("CreateContainerConfigError", text, event="Failed")
            return data.get(reference["key"])
    if "fieldRef" in source:
        return _field(pod, source["fieldRef"]["fieldPath"], pod_ip=pod_ip)
    wanted = source["resourceFieldRef"]["resource"]
    section, _, name = wanted.partition(".")
    return str(container.get("resources", {}).get(section, {}).get(name, "0"))


def _data(api: Api, pod: Json, kind: str, reference: Json) -> dict[str, str]:
    found = api.find(f"v1/{kind.lower()}s", reference["name"], namespace=pod["metadata"]["namespace"])
    if found is None:
        if reference.get("optional"):
            return {}
        text = f'{kind.lower()} "{reference["name"]}" not found'
        raise MissingReference("CreateContainerConfigError", text, event="Failed")
    data: dict[str, str] = found.get("data") or {}
    return {key: base64.b64decode(v).decode() for key, v in data.items()} if kind == "secret" else data


def _field(pod: Json, path: str, *, pod_ip: str) -> str:
    known = {"status.podIP": pod_ip, "status.podIPs": pod_ip, "status.hostIP": "127.0.0.1"}
    known |= {f"metadata.{key}": pod["metadata"][key] for key in ("name", "namespace", "uid")}
    known |= {"spec.nodeName": pod["spec"]["nodeName"]}
    known |= {"spec.serviceAccountName": pod["spec"].get("serviceAccountName", "default")}
    for section in ("labels", "annotations"):
        known |= {f"metadata.{section}['{k}']": v for k, v in pod["metadata"].get(section, {}).items()}
    return str(known.get(path, ""))


def _expand(text: str, environment: dict[str, str]) -> str:
    """Expands `$(NAME)` as Kubernetes does: unknown names stay unchanged, and `$$` becomes `$`."""

    def replace(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else environment.get(found[1], found[0])

    return REFERENCE.sub(replace, text)
