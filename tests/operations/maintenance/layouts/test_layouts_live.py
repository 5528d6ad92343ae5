"""The worker adds a planned layout to the MIG manager's file, with the rights of deploy/mig and behind the fence."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import yaml

from accounts.core.actor import Actor
from accounts.models import Event, User
from cluster.client.errors import ClusterRefused
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from devcluster.kubelet.mig_manager import FIRST_LAYOUTS, MigManager, install_layout_file
from operations.maintenance import actions, layout_file
from operations.models import Maintenance, MaintenanceNode
from tests.operations.maintenance.lab import GPU, SLICE, DyingKube, Lab
from tests.operations.maintenance.test_maintenance_live import CLOSED, OPEN
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]
LAYOUT, HALVES = "portal-2gpu_7x1g.10gb-2gpu_2x3g.40gb", "nvidia.com/mig-3g.40gb"
AFTER = {SLICE: 14, HALVES: 4}
HELD = {**CLOSED, "cordoned": False}


@pytest.fixture
def lab(admin: Api, cluster: Cluster, kube_worker: Kube, olga: User, unique: str) -> Iterator[Lab]:
    found = Lab(admin, cluster, DyingKube(kube_worker), Actor(olga, via="page"), f"maintained-{unique}")
    found.add()
    try:
        yield found
    finally:
        found.remove()


@pytest.fixture
def place(unique: str, settings: Any) -> tuple[str, str]:
    settings.MIG_LAYOUTS_CONFIG_MAP = (f"mig-{unique}", "layouts")
    return (f"mig-{unique}", "layouts")


@pytest.fixture
def site(admin: Api, place: tuple[str, str], kube_worker: Kube) -> Iterator[None]:
    """What a site does that lets the portal add layouts."""
    install_layout_file(admin, namespace=place[0], name=place[1])
    try:
        wait_until(lambda: not _is_forbidden(kube_worker, place), within_s=20)
        yield
    finally:
        admin.delete("v1/namespaces", place[0])


def _is_forbidden(kube: Kube, place: tuple[str, str]) -> bool:
    """RBAC follows its objects after a moment. The right names one object, so it is tried."""
    try:
        kube.get("ConfigMap", namespace=place[0], name=place[1])
    except ClusterRefused as refused:
        return refused.status == 403
    return False


@pytest.fixture
def manager(admin: Api, lab: Lab, place: tuple[str, str]) -> Iterator[MigManager]:
    with MigManager(admin, labels=f"nvidia.com/gpu.product={lab.node}", pause_s=0.1, config_map=place) as found:
        yield found


def node() -> MaintenanceNode:
    return MaintenanceNode.objects.get()


def written(admin: Api, place: tuple[str, str]) -> str:
    return str(admin.get("v1/configmaps", place[1], namespace=place[0])["data"]["config.yaml"])


def test_a_layout_is_added_waited_for_and_applied(
    lab: Lab, place: tuple[str, str], site: None, manager: MigManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two minutes are an hour here, so that the test sees the node wait; then they are over."""
    monkeypatch.setattr(layout_file, "READ_WITHIN", timedelta(hours=1))
    lab.plan(mig_config=LAYOUT, expected=AFTER)
    lab.until(lambda: "was just added" in node().problem)
    assert (node().step, lab.state()["config"]) == ("changing", "all-disabled"), "the label is not set yet"
    assert lab.state() == {**CLOSED, "config": "all-disabled", "devices": {GPU: 4}}
    found = written(lab.admin, place)
    head, rest = FIRST_LAYOUTS.partition("mig-configs:\n")[::2]
    assert found.startswith(head)
    assert found.endswith(rest), "the layouts of others are there, byte for byte"
    assert list(yaml.safe_load(found)["mig-configs"]) == [LAYOUT, "all-balanced-one-me"]
    monkeypatch.setattr(layout_file, "READ_WITHIN", timedelta(0))
    lab.until(lambda: Maintenance.objects.get().outcome)
    assert Maintenance.objects.get().outcome == "done"
    assert lab.state() == {**OPEN, "config": LAYOUT, "devices": AFTER}
    assert written(lab.admin, place) == found
    [event] = Event.objects.filter(verb="maintenance.layout_added")
    assert event.after == {"layout": LAYOUT}
    assert not Event.objects.filter(verb="maintenance.node_restored").exists(), "nobody else changed the node"


def change(admin: Api, place: tuple[str, str], body: dict[str, Any]) -> None:
    admin.patch("v1/configmaps", place[1], body, namespace=place[0])


@pytest.mark.parametrize("obstacle", ["no rights", "no label", "no file", "another layout", "no key"])
def test_nobody_is_moved_for_a_layout_that_cannot_be_written(
    lab: Lab, place: tuple[str, str], site: None, manager: MigManager, obstacle: str
) -> None:
    """The node stays held, and says why; when the obstacle is gone, it goes on."""
    other = FIRST_LAYOUTS.replace("all-balanced-one-me", LAYOUT)
    spoilt, told = {
        "no rights": (None, "forbidden"),
        "no label": ({"metadata": {"labels": {"gpu-portal/mig-layouts": None}}}, "gpu-portal fence"),
        "no file": (None, "does not exist"),
        "another layout": ({"data": {"config.yaml": other}}, "has another layout of the name"),
        "no key": ({"data": {"config.yaml": None, "more": "x"}}, "has no config.yaml"),
    }[obstacle]
    if spoilt is not None:
        change(lab.admin, place, spoilt)
    elif obstacle == "no file":
        lab.admin.delete("v1/configmaps", place[1], namespace=place[0])
    else:
        lab.admin.delete("rbac.authorization.k8s.io/v1/rolebindings", "gpu-portal-mig-layouts", namespace=place[0])
        wait_until(lambda: _is_forbidden(lab.kube.kube, place), within_s=20)
    row = lab.plan(mig_config=LAYOUT, expected=AFTER)
    lab.until(lambda: told in node().problem)
    assert node().step == "held"
    assert "/".join(place) in node().problem
    assert lab.state() == {**HELD, "config": "all-disabled", "devices": {GPU: 4}}
    if obstacle == "no rights":
        actions.cancel_maintenance(row.pk, by=lab.by)
        lab.until(lambda: Maintenance.objects.get().outcome)
        assert lab.state() == {**OPEN, "config": "all-disabled", "devices": {GPU: 4}}
        return
    if obstacle == "no file":
        install_layout_file(lab.admin, namespace=place[0], name=place[1])
    labels = {"gpu-portal/mig-layouts": "true"}
    change(lab.admin, place, {"metadata": {"labels": labels}, "data": {"config.yaml": FIRST_LAYOUTS}})
    lab.until(lambda: node().step == "changing")


def test_names_of_the_site_and_sites_that_did_not_ask_are_left_alone(
    lab: Lab, place: tuple[str, str], site: None, settings: Any
) -> None:
    lab.plan(mig_config="all-balanced-one-me", expected=AFTER)
    lab.until(lambda: node().step == "waiting")
    assert written(lab.admin, place) == FIRST_LAYOUTS
    Maintenance.objects.all().delete()
    settings.MIG_LAYOUTS_CONFIG_MAP = None
    lab.plan(mig_config=LAYOUT, expected=AFTER)
    lab.until(lambda: node().step == "waiting")
    assert written(lab.admin, place) == FIRST_LAYOUTS
