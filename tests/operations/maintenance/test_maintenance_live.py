"""Maintenance of a node on the real control plane, with a MIG manager that reacts to labels as NVIDIA's does."""

from __future__ import annotations

import pytest

from accounts.events.queries import row_label
from accounts.models import Delivery, Event
from devcluster.kubelet.mig_manager import FAILS, REBOOTS, SILENT, STAGED, MigManager
from operations.maintenance import actions
from operations.models import Maintenance, MaintenanceNode
from tests.operations.maintenance.lab import GPU, SLICE, DyingKube, Lab, WorkerDied

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]
OPEN = {"cordoned": False, "held": False, "taints": [GPU], "noted": False}
CLOSED = {"cordoned": True, "held": True, "taints": [GPU], "noted": True}


def ended() -> str:
    return Maintenance.objects.get().outcome


def node() -> MaintenanceNode:
    return MaintenanceNode.objects.get()


def steps() -> list[str]:
    return [one.after["step"] for one in events("maintenance.step_begun")]


def events(verb: str) -> list[Event]:
    """Of the only maintenance; those of deleted ones stay."""
    return list(Event.objects.filter(verb=verb, row=row_label(Maintenance.objects.get())).order_by("pk"))


WHOLE = ["held", "draining", "changing", "waiting", "verifying", "releasing", "done"]


@pytest.mark.parametrize("staged", ["", REBOOTS])
def test_a_node_is_cut_into_slices(lab: Lab, manager: MigManager, staged: str) -> None:
    lab.admin.patch("v1/nodes", lab.node, {"metadata": {"annotations": {STAGED: staged}}})
    lab.plan()
    lab.until(ended)
    assert ended() == "done"
    assert lab.state() == {**OPEN, "config": "all-1g.10gb", "devices": {SLICE: 28}}
    assert steps() == WHOLE
    [mail] = Delivery.objects.all()
    assert (mail.user.name, mail.subject) == ("Olga", f"Maintenance done: {lab.node}")


def test_a_failed_layout_is_told_and_canceled_with_the_old_one(lab: Lab, manager: MigManager) -> None:
    lab.admin.patch("v1/nodes", lab.node, {"metadata": {"annotations": {STAGED: FAILS}}})
    row = lab.plan()
    lab.until(lambda: "could not be applied" in node().problem)
    assert lab.state() == {**CLOSED, "config": "all-1g.10gb", "devices": {GPU: 4}}
    [mail] = Delivery.objects.all()
    assert mail.subject == f"Maintenance of {lab.node} is stuck"
    assert "could not be applied" in mail.body
    for _again in range(3):
        lab.work()
    assert Delivery.objects.count() == 1, "told once"

    lab.admin.patch("v1/nodes", lab.node, {"metadata": {"annotations": {STAGED: None}}})
    actions.cancel_maintenance(row.pk, by=lab.by)
    lab.until(ended)
    assert ended() == "canceled"
    assert lab.state() == {**OPEN, "config": "all-disabled", "devices": {GPU: 4}}


def test_a_manager_that_never_answers_holds_the_node_until_an_operator_releases_it(
    lab: Lab, manager: MigManager
) -> None:
    lab.admin.patch("v1/nodes", lab.node, {"metadata": {"annotations": {STAGED: SILENT}}})
    row = lab.plan(stuck_minutes=1)
    lab.until(lambda: node().problem == "The MIG manager has not responded; the layout is not applied yet.")
    assert Delivery.objects.count() == 0
    # The state of the last layout, `success`, is not mistaken for that of this one.
    assert node().step == "waiting"
    MaintenanceNode.objects.update(step_since=Maintenance.objects.get().created_at.replace(year=2020))
    lab.until(lambda: Delivery.objects.filter(subject__endswith="is stuck").exists())
    assert lab.state() == {**CLOSED, "config": "all-1g.10gb", "devices": {GPU: 4}}
    actions.release_maintenance(row.pk, by=lab.by)
    lab.until(ended)
    assert ended() == "unverified"
    assert {k: v for k, v in lab.state().items() if k in OPEN} == OPEN


def test_another_result_than_planned_is_not_released(lab: Lab, manager: MigManager) -> None:
    lab.plan(expected={SLICE: 21})
    lab.until(lambda: node().problem)
    lab.until(lambda: node().step == "verifying")
    lab.until(lambda: node().problem == f"The node offers 28 of 21 {SLICE}.")
    assert {k: v for k, v in lab.state().items() if k in CLOSED} == CLOSED


def test_who_uncordons_the_node_by_hand_opens_nothing(lab: Lab) -> None:
    lab.plan(kind="hardware", mig_config="", expected={})
    lab.until(lambda: node().step == "changing")
    lab.admin.patch("v1/nodes", lab.node, {"spec": {"unschedulable": None}})
    assert lab.state()["held"], "the taint still keeps everything off the node"
    lab.until(lambda: lab.state()["cordoned"])
    [event] = events("maintenance.node_restored")
    assert event.after == {"node": lab.node, "fields": ["unschedulable"]}


def test_a_node_that_was_cordoned_before_stays_cordoned(lab: Lab) -> None:
    lab.admin.patch("v1/nodes", lab.node, {"spec": {"unschedulable": True}})
    row = lab.plan(kind="hardware", mig_config="", expected={})
    lab.until(lambda: node().problem == "It waits until an operator says that the work is done.")
    actions.confirm_maintenance(row.pk, by=lab.by)
    lab.until(ended)
    assert ended() == "done"
    assert {k: v for k, v in lab.state().items() if k in OPEN} == {**OPEN, "cordoned": True}


def test_a_node_that_dies_stays_closed_and_a_node_that_is_deleted_can_be_given_up(lab: Lab) -> None:
    row = lab.plan(kind="hardware", mig_config="", expected={})
    lab.until(lambda: node().step == "changing")
    lab.remove()
    lab.until(lambda: "no longer in the cluster" in node().problem)
    actions.cancel_maintenance(row.pk, by=lab.by)
    lab.until(ended)
    assert ended() == "canceled"


@pytest.mark.parametrize("step", ["planned", "held", "draining", "changing", "waiting", "verifying"])
def test_a_cancel_at_each_step_leaves_the_node_as_it_was(lab: Lab, manager: MigManager, step: str) -> None:
    """The step is reached, and canceled before the next pass."""
    row = lab.plan()
    lab.kube.dies_in = step
    with pytest.raises(WorkerDied):
        lab.until(ended)
    assert node().step == step
    lab.kube.dies_in = ""
    actions.cancel_maintenance(row.pk, by=lab.by)
    lab.until(ended)
    assert ended() == "canceled"
    assert lab.state() == {**OPEN, "config": "all-disabled", "devices": {GPU: 4}}


def test_a_worker_may_die_before_and_after_every_write(lab: Lab, manager: MigManager) -> None:
    """The writes are counted in an undisturbed maintenance; then the worker dies at each of them."""
    lab.plan()
    lab.until(ended)
    undisturbed = lab.state()
    writes = len(lab.kube.writes)
    assert writes == 4, "hold, cordon, labels, release"
    there_and_back = ("all-disabled", {GPU: 4}), ("all-1g.10gb", {SLICE: 28})
    for number in range(1, writes + 1):
        for is_after in (False, True):
            Maintenance.objects.all().delete()
            config, devices = there_and_back[lab.state()["config"] == "all-disabled"]
            worker = lab.kube
            lab.kube = DyingKube(worker.kube, dies_at=number, is_after=is_after)
            lab.plan(mig_config=config, expected=devices)
            deaths = 0
            for _pass in range(200):
                try:
                    lab.until(ended)
                    break
                except WorkerDied:
                    deaths += 1
            assert (deaths, ended()) == (1, "done"), (number, is_after)
            assert lab.state() == {**undisturbed, "config": config, "devices": devices}, (number, is_after)
            assert steps() == WHOLE, (number, is_after)
            assert events("maintenance.node_restored") == [], (number, is_after)
