"""The host that vanishes leaves this machine's IP addresses alone: Chromium would end the requests of other tests."""

from __future__ import annotations

import os
import subprocess

import pytest

from devcluster.faults.vanishing_host import NoNamespaces, VanishingHost


def test_no_ip_address_comes_or_goes_on_this_machine() -> None:
    try:
        with VanishingHost(os.getpid() % 64) as host:
            asked = ["ip", "-oneline", "address", "show", "dev", host.cable]
            found = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    except NoNamespaces as why:
        pytest.skip(str(why))
    assert found == ""
