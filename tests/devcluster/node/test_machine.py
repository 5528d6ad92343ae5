"""What a real node needs of its machine, and what it is called there."""

from __future__ import annotations

import itertools
import os

import pytest

from devcluster.node import machine
from devcluster.node.machine import NodeNamespaces
from devcluster.processes.console import UserError

PORTS = (20_000, 20_001, 28_191, 28_192, 31_999)


def test_without_root_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UserError, match="needs root"):
        machine.check()


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(machine.shutil, "which", lambda program, path: None if program in ("runc", "nft") else program)
    assert "apt-get install runc nftables" in machine.missing()


@pytest.mark.parametrize("port", PORTS)
def test_addresses_of_a_node_are_its_own(port: int) -> None:
    one = NodeNamespaces(port)
    assert len(one.link) < 16, "the kernel's limit for names of devices"
    addresses = {one.machine_address, one.node_address}
    assert len(addresses) == 2
    assert not any(str(pod) in addresses for pod in one.pods)


def test_nodes_at_the_same_time_share_no_address() -> None:
    near = [NodeNamespaces(port) for port in PORTS[:3]]
    assert not any(one.pods.overlaps(other.pods) for one, other in itertools.combinations(near, 2))
