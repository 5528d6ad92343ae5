"""Where the network policy of a team's namespace lets pods connect to, by addresses as the network sees them."""

from __future__ import annotations

import ipaddress
from dataclasses import replace
from typing import Any

import pytest

from cluster.manifests.namespace import network_egress
from cluster.manifests.site import site_profile
from devcluster.client.kube import Api
from tests.cluster.manifests.test_manifests_namespace import SPEC

Json = dict[str, Any]
PUBLIC = ["151.101.0.223", "140.82.121.4", "2a04:4e42::223", "172.15.0.1", "172.32.0.1", "11.0.0.1"]
# Pods, Services, nodes and API servers of usual clusters, and what a site has for itself.
PRIVATE = ["10.96.0.1", "10.244.3.7", "172.20.0.10", "192.168.1.1", "100.64.1.1", "fd12::1", "240.1.2.3", "198.18.0.1"]
CREDENTIALS = [
    *("169.254.169.254", "169.254.170.23", "168.63.129.16", "100.100.100.200"),
    *("fe80::1", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe"),
]


def policy(egress: str) -> Json:
    return network_egress(replace(SPEC, site=site_profile({"egress": egress})))


def is_open(found: Json, address: str, port: int = 443) -> bool:
    one = ipaddress.ip_address(address)
    for rule in found["spec"]["egress"]:
        ports = [(entry["protocol"], entry["port"]) for entry in rule.get("ports", [])]
        if ports and ("TCP", port) not in ports:
            continue
        for block in (to["ipBlock"] for to in rule["to"] if "ipBlock" in to):
            closed = any(one in ipaddress.ip_network(inner) for inner in block.get("except", []))
            if one in ipaddress.ip_network(block["cidr"]) and not closed:
                return True
    return False


@pytest.mark.parametrize("egress", ["", "internet", "# ours\n\n"])
def test_by_default_the_internet_is_open_and_the_cluster_is_not(egress: str) -> None:
    found = policy(egress)

    assert [address for address in PUBLIC if not is_open(found, address)] == []
    assert [address for address in PRIVATE + CREDENTIALS if is_open(found, address)] == []


def test_what_a_site_lists_is_open_and_nothing_else() -> None:
    found = policy("10.20.0.0/16 443\nfd12::/64")

    assert is_open(found, "10.20.3.4")
    assert is_open(found, "fd12::1", port=9000)
    assert not is_open(found, "10.20.3.4", port=80)
    assert not is_open(found, "10.21.0.1")
    assert [address for address in PUBLIC if is_open(found, address)] == []
    both = policy("internet 443\n10.20.0.0/16")
    assert (is_open(both, PUBLIC[0]), is_open(both, PUBLIC[0], port=22), is_open(both, "10.20.0.1")) == (
        True,
        False,
        True,
    )


@pytest.mark.parametrize("egress", ["nothing", "10.0.0.0/8 44x", "internet\n169.254.169.254/32"])
def test_nothing_is_open_if_the_site_says_so_or_something_wrong(egress: str) -> None:
    found = policy(egress)

    assert [address for address in PUBLIC + PRIVATE + CREDENTIALS if is_open(found, address)] == []


@pytest.mark.parametrize("egress", ["0.0.0.0/0\n::/0", "internet\n100.100.0.0/16\n169.0.0.0/8\nfd00::/8"])
def test_no_list_opens_the_addresses_that_give_credentials(egress: str) -> None:
    found = policy(egress)

    assert [address for address in CREDENTIALS if is_open(found, address)] == []
    assert is_open(found, "100.100.1.1")


def test_names_are_resolved_and_pods_of_the_namespace_reached() -> None:
    own, names, *_ = policy("nothing")["spec"]["egress"]

    assert own == {"to": [{"podSelector": {}}]}
    assert names["to"] == [{"namespaceSelector": {}}]
    assert {(one["protocol"], one["port"]) for one in names["ports"]} == {
        ("UDP", 53), ("TCP", 53), ("UDP", 5353), ("TCP", 5353),
    }  # fmt: skip


@pytest.mark.parametrize("egress", ["", "nothing", "0.0.0.0/0\n::/0\n10.20.0.0/16 443"])
def test_the_api_server_takes_the_policy(admin: Api, egress: str) -> None:
    found = policy(egress)
    found["metadata"]["namespace"] = "default"

    admin.create(found, dry_run=True)
