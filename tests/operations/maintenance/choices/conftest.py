"""A maintenance and a run on its node, by name."""

from __future__ import annotations

from functools import partial

import pytest

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Namespace
from tests.operations.maintenance.choices.rows import Launch, Plan, planned, ready_run


@pytest.fixture
def plan(cluster: Cluster, olga: User) -> Plan:
    return partial(planned, cluster, olga)


@pytest.fixture
def launched(namespace_a: Namespace, a100: GpuClass, alice: User) -> Launch:
    return partial(ready_run, namespace_a, a100, alice)
