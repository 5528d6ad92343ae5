"""The site profile: what differs from cluster to cluster, parsed from the ConfigMap `site` in the portal's namespace.
Pure.

Admission policies in deploy/base read the same ConfigMap. A list has one entry in each line; blank
lines and lines that begin with # are ignored. A key with a wrong value counts as not set, and `problems` says so.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cluster.manifests import names

CONFIG_MAP = "site"
# The value with which the cluster chooses the user and group of a pod, as OpenShift does.
AS_CLUSTER_ASSIGNS = "cluster"
DEFAULT_USER = 1000
READ_WRITE_ONCE, READ_WRITE_MANY = "ReadWriteOnce", "ReadWriteMany"
DEFAULT_GROUP = 100
# Values of `egress`.
INTERNET = "internet"
NOTHING = "nothing"
# Where clouds give the credentials of the node or of a role to any pod that asks. Their DNS servers are not among them.
METADATA = (
    "169.254.0.0/16",  # link-local: most clouds, and EKS Pod Identity
    "168.63.129.16/32",  # Azure's agent of the host
    "100.100.100.200/32",  # Alibaba
    "fe80::/10",  # link-local
    "fd00:ec2::254/128",  # AWS
    "fd00:ec2::23/128",  # EKS Pod Identity
    "fd20:ce::254/128",  # Google
    "fd00:c1::a9fe:a9fe/128",  # Oracle
)
# Where clusters have their nodes, pods, Services and API servers, and sites what is only for them.
PRIVATE = (
    "10.0.0.0/8",
    "100.64.0.0/10",  # carriers; also pods of EKS and GKE
    "172.16.0.0/12",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "240.0.0.0/4",  # reserved; also pods of large clusters
    "fc00::/7",
)
EVERYWHERE = ("0.0.0.0/0", "::/0")
_DOMAIN = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"
_KEY = rf"({_DOMAIN}/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"
_LABEL_VALUE = r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?"
# Names that give devices or skip Kueue, whatever a site says; the policy has the same limits.
_DEVICE_ANNOTATION = re.compile(
    r"((.+\.)?(cdi\.k8s\.io|nvidia\.com|amd\.com|intel\.com|habana\.ai|cri-o\.io|katacontainers\.io)/"
    r"|io\.(kubernetes\.cri-o|katacontainers)\.).*"
)
_GPU_RESOURCE = re.compile(r"(nvidia\.com|amd\.com|gpu\.intel\.com|habana\.ai|kubernetes\.io|.+\.kubernetes\.io)/.*")
_OWN_LABEL = re.compile(r"(gpu-portal|kueue\.x-k8s\.io|pod-security\.kubernetes\.io|resource\.kubernetes\.io)/.*")


@dataclass(frozen=True)
class ProfileProblem:
    """A key that is ignored, and what to write instead: sentences for operators."""

    sentence: str
    way_out: str


@dataclass(frozen=True)
class OfferedStorage:
    """A StorageClass for new volumes; the name "" is the default class of the cluster."""

    name: str = ""
    access_mode: str = READ_WRITE_ONCE

    @property
    def is_shared(self) -> bool:
        """Several runs, on several nodes, may use such a volume at the same time."""
        return self.access_mode == READ_WRITE_MANY


DEFAULT_STORAGE = OfferedStorage()


@dataclass(frozen=True)
class EgressTarget:
    """`blocks`: each with the blocks in it that stay closed. `port`: the only one, of TCP; None: all."""

    blocks: tuple[tuple[str, tuple[str, ...]], ...]
    port: int | None = None


def egress_target(line: str) -> EgressTarget:
    """Of one entry: `internet` or a block of addresses, then maybe a port. Raises ValueError."""
    block, *rest = line.split()
    port = int(*rest) if rest else None
    if port is not None and not 0 < port < 65536:
        raise ValueError(line)
    if block == INTERNET:
        return EgressTarget(tuple(_opened(one, *METADATA, *PRIVATE) for one in EVERYWHERE), port)
    if any(_is_in(block, one) for one in METADATA):
        raise ValueError(line)
    return EgressTarget((_opened(block, *METADATA),), port)


def _opened(block: str, *closed: str) -> tuple[str, tuple[str, ...]]:
    """With the largest closed blocks inside."""
    inside = [one for one in closed if _is_in(one, block)]
    return block, tuple(one for one in inside if not any(_is_in(one, other) for other in inside if other != one))


def _is_in(inner: str, outer: str) -> bool:
    one, other = ipaddress.ip_network(inner), ipaddress.ip_network(outer)
    return one.version == other.version and one.subnet_of(other)  # type: ignore[arg-type]


PUBLIC = (egress_target(INTERNET),)


@dataclass(frozen=True)
class SiteProfile:
    """The parsed profile; without arguments, that of a site that sets nothing. `user` and `group` None: the cluster
    assigns them.
    """

    user: int | None = DEFAULT_USER
    group: int | None = DEFAULT_GROUP
    priority_class: str = names.PRIORITY_CLASS
    pull_secrets: tuple[str, ...] = ()
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    dns_addresses: tuple[str, ...] = ()
    egress: tuple[EgressTarget, ...] = PUBLIC
    gpu_node_labels: tuple[str, ...] = ()
    gpu_taints: tuple[str, ...] = ()
    # Class → resource → amount for each worker.
    class_devices: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # Class → GiB for each pod; "" for the other classes.
    pod_disk: Mapping[str, int] = field(default_factory=dict)
    # For new volumes; the first one unless another is chosen. Empty: the default class of the cluster.
    storage_classes: tuple[OfferedStorage, ...] = ()
    problems: tuple[ProfileProblem, ...] = ()

    @property
    def named_pull_secrets(self) -> tuple[str, ...]:
        """Those that the worker puts into pods; patterns only say what the cluster may add."""
        return tuple(name for name in self.pull_secrets if not name.endswith("*"))

    def disk_gib(self, gpu_class: str) -> int | None:
        """Of the node's own disk, for each pod of the class. None: not limited."""
        return self.pod_disk.get(gpu_class, self.pod_disk.get(""))


DEFAULT = SiteProfile()


def site_profile(data: Mapping[str, str]) -> SiteProfile:
    """Parses the data of the ConfigMap."""
    found: dict[str, object] = {}
    problems = []
    for key, text in sorted(data.items()):
        if key not in _KEYS:
            known = ", ".join(sorted(_KEYS))
            problems.append(
                ProfileProblem(f"The site profile has the unknown key {key}.", f"Remove it, or use one of {known}.")
            )
            continue
        parse, attribute, way_out = _KEYS[key]
        lines = _lines(text)
        try:
            value = parse(lines)
        except _WrongEntry as wrong:
            sentence = f"The key {key} of the site profile is ignored, because “{wrong}” is not valid."
            problems.append(ProfileProblem(sentence, way_out))
            found |= wrong.instead
            continue
        if attribute and lines:
            found[attribute] = value
    return SiteProfile(**found, problems=tuple(problems))  # type: ignore[arg-type]


class _WrongEntry(ValueError):
    """The text is the wrong entry. `instead`: what is then set, where the default would allow more."""

    def __init__(self, entry: str, **instead: object) -> None:
        super().__init__(entry)
        self.instead = instead


def _lines(text: str) -> list[str]:
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _entries(pattern: str, *, unless: re.Pattern[str] | None = None) -> Callable[[list[str]], tuple[str, ...]]:
    shape = re.compile(pattern)

    def parse(lines: list[str]) -> tuple[str, ...]:
        for line in lines:
            if not shape.fullmatch(line) or (unless is not None and unless.fullmatch(line)):
                raise _WrongEntry(line)
        return tuple(lines)

    return parse


def _labels(lines: list[str]) -> dict[str, str]:
    found = {}
    for line in lines:
        key, equals, value = line.partition("=")
        is_own = _OWN_LABEL.fullmatch(key) or key == "app.kubernetes.io/managed-by"
        if not equals or is_own or not re.fullmatch(_KEY, key) or not re.fullmatch(_LABEL_VALUE, value):
            raise _WrongEntry(line)
        found[key] = value
    return found


def _addresses(lines: list[str]) -> tuple[str, ...]:
    for line in lines:
        try:
            ipaddress.ip_address(line)
        except ValueError:
            raise _WrongEntry(line) from None
    return tuple(lines)


def _egress(lines: list[str]) -> tuple[EgressTarget, ...]:
    found = []
    for line in [] if lines == [NOTHING] else lines:
        try:
            found.append(egress_target(line))
        except (TypeError, ValueError):
            raise _WrongEntry(line, egress=()) from None
    return tuple(found)


def _number(lines: list[str]) -> int | None:
    if lines in ([], [AS_CLUSTER_ASSIGNS]):
        return None
    if len(lines) > 1 or not re.fullmatch(r"[1-9][0-9]{0,8}", lines[0]):
        raise _WrongEntry(" ".join(lines))
    return int(lines[0])


def _name(lines: list[str]) -> str:
    if not lines:
        return ""
    if len(lines) > 1 or not re.fullmatch(_DOMAIN, lines[0]) or lines[0].startswith("system-"):
        raise _WrongEntry(" ".join(lines))
    return lines[0]


def _class_devices(lines: list[str]) -> dict[str, dict[str, str]]:
    shape = re.compile(rf"([a-z0-9-]+) (hugepages-[0-9]+[MG]i|{_DOMAIN}/[A-Za-z0-9._-]+)=([1-9][0-9]*(Mi|Gi)?)")
    found: dict[str, dict[str, str]] = {}
    for line in lines:
        match = shape.fullmatch(line)
        if match is None or _GPU_RESOURCE.fullmatch(match[2]):
            raise _WrongEntry(line)
        found.setdefault(match[1], {})[match[2]] = match[4]
    return found


def _pod_disk(lines: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in lines:
        match = re.fullmatch(r"(?:([a-z0-9-]+) +)?([1-9][0-9]{0,5})", line)
        if match is None:
            raise _WrongEntry(line)
        found[match[1] or ""] = int(match[2])
    return found


def _storage_classes(lines: list[str]) -> tuple[OfferedStorage, ...]:
    found: dict[str, OfferedStorage] = {}
    for line in lines:
        match = re.fullmatch(rf"({_DOMAIN})(?: +({READ_WRITE_ONCE}|{READ_WRITE_MANY}))?", line)
        if match is None or match[1] in found:
            raise _WrongEntry(line)
        found[match[1]] = OfferedStorage(match[1], match[3] or READ_WRITE_ONCE)
    return tuple(found.values())


_LABELS_WAY_OUT = "Write key=value; labels of the portal, of Kueue and of Pod Security cannot be set."
# Key → (parser, field of SiteProfile or "" where only the policy reads it, way out).
_KEYS: Mapping[str, tuple[Callable[[list[str]], object], str, str]] = {
    "pod-annotations": (
        _entries(rf"{_DOMAIN}/[A-Za-z0-9._-]*\*?", unless=_DEVICE_ANNOTATION),
        "",
        "Write whole names such as openshift.io/scc, or a prefix with its domain such as sidecar.istio.io/*; "
        "annotations that give devices cannot be allowed.",
    ),
    "user-id": (_number, "user", f"Write a number above 0, or {AS_CLUSTER_ASSIGNS} if the cluster assigns it."),
    "group-id": (_number, "group", f"Write a number above 0, or {AS_CLUSTER_ASSIGNS} if the cluster assigns it."),
    "pod-priority-class": (_name, "priority_class", "Write the name of one PriorityClass that is not of the system."),
    "pull-secrets": (
        _entries(rf"{_DOMAIN}-?\*?", unless=re.compile(r".*-pull")),
        "pull_secrets",
        "Write names of Secrets, or a prefix such as gpu-portal-dockercfg-*; names that end in -pull belong to runs.",
    ),
    "pod-labels": (_labels, "pod_labels", _LABELS_WAY_OUT),
    "namespace-labels": (_labels, "namespace_labels", _LABELS_WAY_OUT),
    "dns-addresses": (_addresses, "dns_addresses", "Write IP addresses, such as 169.254.20.10."),
    "egress": (
        _egress,
        "egress",
        "Until then nothing outside is open. Write internet, nothing, or blocks of addresses, each maybe with a port: "
        "10.20.0.0/16 443. Addresses that give credentials of the cloud cannot be opened.",
    ),
    "gpu-node-labels": (_entries(_KEY), "gpu_node_labels", "Write names of node labels without values."),
    "gpu-taints": (
        _entries(_KEY, unless=re.compile(r"((.+\.)?kubernetes\.io|gpu-portal)/.*")),
        "gpu_taints",
        "Write keys of taints without values; those of Kubernetes itself and of the portal cannot be tolerated.",
    ),
    "class-devices": (
        _class_devices,
        "class_devices",
        "Write class resource=amount for each worker, such as h100 vpc.amazonaws.com/efa=4; GPUs are not among them.",
    ),
    "pod-disk": (_pod_disk, "pod_disk", "Write whole GiB for all classes, such as 50, or for one: h100 500."),
    "storage-classes": (
        _storage_classes,
        "storage_classes",
        f"Write each StorageClass once, with {READ_WRITE_ONCE} or {READ_WRITE_MANY}, such as efs {READ_WRITE_MANY}.",
    ),
}
KEYS = frozenset(_KEYS)
