"""Where pods of teams may connect to: the key `egress` of the site profile as blocks of addresses. Pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

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
