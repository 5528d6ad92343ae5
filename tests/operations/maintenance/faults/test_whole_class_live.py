"""A maintenance of all nodes of a class: nothing else provides it, so that its runs wait until a node is open again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from django.test import Client
from django.urls import reverse

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass
from operations.maintenance import actions
from operations.models import Maintenance, MaintenanceNode
from tenants.models import Namespace
from tests.operations.maintenance.lab import Lab, nodes_of
from tests.support.cluster.worker import Worker
from tests.support.waiting import wait_until
from tests.workloads.cases.live import RUNNING, told
from workloads.launch import actions as launch_actions
from workloads.launch.types import LaunchSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]


def test_nothing_starts_until_the_nodes_are_released(
    two_nodes: dict[str, Lab], own: GpuClass, namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, worker: Worker,
    client: Client, olga: User,
) -> None:  # fmt: skip
    lab, _other = two_nodes.values()
    spec = replace(job, gpu_class=own.slug, units=4)
    launch_actions.launch("team-a", replace(spec, name="long"), by=by_alice)
    worker(lambda: told()["long"] == RUNNING)
    row = lab.plan(nodes=list(two_nodes), kind="hardware", mig_config="", expected={})
    client.force_login(olga)
    page = client.get(reverse("maintenance", args=[row.pk])).content.decode()
    assert "Nothing else provides this class: what is queued for it waits until the nodes are back." in page

    def until(condition: Callable[[], object]) -> None:
        def one_pass() -> object:
            lab.work()
            worker(lambda: True)
            return condition()

        wait_until(one_pass, within_s=90, story=lambda: f"{told()} {lab.story()}")

    until(lambda: set(MaintenanceNode.objects.values_list("step", flat=True)) == {"changing"})
    launch_actions.launch("team-a", replace(spec, name="late"), by=by_alice)
    for _pass in range(3):
        until(lambda: told()["late"][0] in ("queued", "blocked"))
        assert nodes_of(lab.admin, namespace_a.name) == {}
    assert told()["long"][0] in ("queued", "blocked")

    actions.confirm_maintenance(row.pk, by=lab.by)
    until(lambda: Maintenance.objects.get().outcome == "done")
    until(lambda: told() == {"long": RUNNING, "late": RUNNING})
    # The page is ahead of the worker: it reads the mirror, and the event follows with the worker's next look.
    causes = Event.objects.filter(verb="workload.interrupted").values_list("after__reason", flat=True)
    until(lambda: list(causes.all()) == ["maintenance"])
