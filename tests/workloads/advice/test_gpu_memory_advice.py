"""For a run that requests a memory size, only devices with so much count as free."""

from __future__ import annotations

import pytest

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Namespace, Tenant
from tests.catalog.classes.capacity.test_device_memory import claim, devices, seen, sized
from tests.support.rows import make
from tests.support.rows.waiting_runs import runs, told, waits
from workloads.models import Workload

pytestmark = pytest.mark.django_db
# A fixture of another module, by name.
__all__ = ["sized"]


def test_no_smaller_size_and_no_stop_is_suggested_that_frees_other_devices(
    sized: GpuClass, a100: GpuClass, team_a: Tenant, namespace_a: Namespace, alice: User, by_alice: Actor
) -> None:
    for one in (sized, a100):
        make.grant(team_a, one, units=4)
    seen(sized.cluster, devices("n1", 20, 40, 40), claims=[claim("a", ("n1", 1), ("n1", 2))])
    runs(namespace_a, sized, alice, "busy", units=2, node="n1")
    found = waits(namespace_a, sized, alice, units=2)

    def verbs() -> set[str]:
        return {step.verb for step in told(by_alice)["waits"].steps}

    assert {"fewer_units", "stop_other"} <= verbs()
    Workload.objects.filter(pk=found.pk).update(options={"gpu_memory_gib": 10})
    assert "fewer_units" in verbs()
    Workload.objects.filter(pk=found.pk).update(options={"gpu_memory_gib": 30})
    assert not {"fewer_units", "stop_other"} & verbs()
