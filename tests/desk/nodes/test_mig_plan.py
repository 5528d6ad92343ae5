"""The page that plans a MIG layout for a node: what is in use and queued, what a layout serves and ends."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from cluster.models import Cluster, MirrorNode
from cluster.reads import queries
from desk.nodes.mig_plan import PartitionableNode, partitionable
from devcluster.controlplane import hardware
from tenants.models import Namespace
from tests.support.rows import make, mirrored, waiting_runs

pytestmark = pytest.mark.django_db
PATH = "/nodes/a100-mig/mig"


def slices(cluster: Cluster, profile: str) -> Any:
    return make.gpu_class(
        cluster, slug=f"mig-{profile.replace('.', '-')}", partition=profile, resource=f"nvidia.com/mig-{profile}"
    )


def shown(olga: User, path: str = PATH) -> Any:
    client = Client()
    client.force_login(olga)
    found = client.get(path)
    assert found.status_code == 200
    return found


def node(**labels: str) -> Any:
    found = MirrorNode.objects.get(name="a100-mig")
    found.record["labels"] = {f"nvidia.com/{name.replace('__', '.')}": value for name, value in labels.items()}
    return queries.node_of(found)


def test_the_demand_is_what_is_used_and_queued(
    cluster: Cluster, namespace_a: Namespace, olga: User, alice: User
) -> None:
    used = mirrored.pod("p", node="a100-mig", namespace="elsewhere", **{"nvidia.com/mig-3g.40gb": 2})
    mirrored.hardware_seen(cluster, Pod=[used], Workload=[], Job=[])
    waiting_runs.waits(namespace_a, slices(cluster, "1g.10gb"), alice, units=9)
    found = shown(olga)
    lines = {line.profile: (line.current, line.used, line.queued) for line, _field in found.context["lines"]}
    assert lines == {
        "1g.10gb": (7, 0, 9),
        "1g.10gb+me": (1, 0, 0),
        "1g.20gb": (0, 0, 0),
        "2g.20gb": (4, 0, 0),
        "3g.40gb": (4, 2, 0),
        "4g.40gb": (0, 0, 0),
        "7g.80gb": (0, 0, 0),
    }
    assert found.context["plan"].served == {"1g.10gb": 9, "3g.40gb": 2}
    assert found.context["served_now"] == 7 + 2
    text = found.content.decode()
    assert "serves 11 of 11 instances; the present layout serves 9" in text
    (pod,) = found.context["page"].work.pods
    assert "3g.40gb" in pod.units
    assert f"elsewhere: {pod.units}" in text
    [groups] = yaml.safe_load(found.context["parted"])["mig-configs"].values()
    assert sum(len(group["devices"]) * group["mig-devices"].get("3g.40gb", 0) for group in groups) >= 2


def test_of_shared_instances_it_is_not_known_how_many_are_used(cluster: Cluster, olga: User) -> None:
    """Nine shares of seven instances that four pods share: all seven are kept, and not nine."""
    shares = mirrored.pod("p", node="mig-sliced", namespace="elsewhere", **{"nvidia.com/mig-1g.10gb": 9})
    mirrored.hardware_seen(cluster, Pod=[shares], Workload=[], Job=[])
    found = shown(olga, "/nodes/mig-sliced/mig")
    line = next(line for line, _field in found.context["lines"] if line.profile == "1g.10gb")
    assert (line.current, line.used, line.proposed) == (7, None, 7)
    assert found.context["plan"].served == {"1g.10gb": 7}
    mirrored.hardware_seen(cluster, Pod=[], Workload=[], Job=[])
    free = shown(olga, "/nodes/mig-sliced/mig").context["lines"]
    assert {line.used for line, _field in free} == {0}


def test_an_unknown_queue_is_not_zero(cluster: Cluster, olga: User, monkeypatch: pytest.MonkeyPatch) -> None:
    mirrored.hardware_seen(cluster)
    monkeypatch.setattr("desk.nodes.mig_plan.waiting_units", lambda _cluster: None)
    found = shown(olga)
    assert {line.queued for line, _field in found.context["lines"]} == {None}
    assert '<td class="r">unknown</td>' in found.content.decode()


def test_a_long_queue_is_a_demand(cluster: Cluster, namespace_a: Namespace, olga: User, alice: User) -> None:
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    waiting_runs.waits(namespace_a, slices(cluster, "1g.10gb"), alice, units=5000)
    plan = shown(olga).context["plan"]
    assert (plan.served, plan.unserved) == ({"1g.10gb": 28}, {"1g.10gb": 4972})


def test_another_demand_and_strategy(cluster: Cluster, olga: User) -> None:
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    found = shown(olga, f"{PATH}?7g.80gb=5&strategy=single")
    lost = [("1g.10gb", 7, 0), ("1g.10gb+me", 1, 0), ("2g.20gb", 4, 0), ("3g.40gb", 4, 0)]
    assert found.context["changes"] == [*lost, ("7g.80gb", 0, 4)]
    assert "3g.40gb: 4 → 0, 7g.80gb: 0 → 4" in found.content.decode()
    # A plan for one of four GPUs does not say which instances the others have.
    partial = shown(olga, f"{PATH}?7g.80gb=1")
    assert partial.context["changes"] == []
    assert "Maintenance cannot be planned with this layout" in partial.content.decode()
    assert "Maintenance cannot be planned" not in found.content.decode()
    assert found.context["plan"].served == {"7g.80gb": 4}
    assert found.context["plan"].unserved == {"7g.80gb": 1}
    assert len(found.context["drawn"].cards) == 4


@pytest.mark.parametrize(
    ("value", "sentence"),
    [("x", "enter a whole number from 0 to 100000"), ("-1", "enter 0 or more"), ("100001", "enter 100000 or less")],
)
def test_a_wrong_number_is_said_at_its_field(cluster: Cluster, olga: User, value: str, sentence: str) -> None:
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    found = shown(olga, f"{PATH}?2g.20gb={value}&3g.40gb=2")
    assert f"2g.20gb: {sentence}" in found.content.decode()
    assert "plan" not in found.context
    assert f'value="{value}"' in found.content.decode()


def test_nothing_wanted_proposes_nothing(cluster: Cluster, olga: User) -> None:
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    for strategy in ("mixed", "single"):
        found = shown(olga, f"{PATH}?strategy={strategy}")
        assert found.context["plan"].layouts == ()
        assert "Apply it" not in found.content.decode()


@pytest.mark.parametrize(("name", "sentence"), [("cpu-1", "name no NVIDIA GPU"), ("mi300x", "name no NVIDIA GPU")])
def test_a_node_without_mig_is_refused_in_words(cluster: Cluster, olga: User, name: str, sentence: str) -> None:
    mirrored.hardware_seen(cluster)
    assert sentence in shown(olga, f"/nodes/{name}/mig").content.decode()
    assert "Plan a MIG layout" not in shown(olga, f"/nodes/{name}").content.decode()


def test_the_page_of_a_node_links_here(cluster: Cluster, olga: User) -> None:
    mirrored.hardware_seen(cluster)
    assert f'href="{PATH}"' in shown(olga, "/nodes/a100-mig").content.decode()
    assert 'href="/nodes/a100-1/mig"' in shown(olga, "/nodes/a100-1").content.decode()


def test_what_labels_say_of_the_gpus(cluster: Cluster) -> None:
    mirrored.hardware_seen(cluster)
    single = partitionable(
        node(gpu__product="NVIDIA-A100-SXM4-80GB-MIG-2g.20gb", gpu__count="10", mig__strategy="single")
    )
    assert isinstance(single, PartitionableNode)
    assert (single.gpus, single.strategy, single.current) == (4, "single", {"2g.20gb": 10})
    # A product of several sizes is read with the memory that the node reports.
    nearest = partitionable(node(gpu__product="NVIDIA-H800", gpu__count="8", gpu__memory="95830"))
    assert isinstance(nearest, PartitionableNode)
    assert "3g.47gb" in nearest.profiles
    assert partitionable(node(gpu__product="NVIDIA-H800", gpu__count="8")) == (
        "The names of the MIG profiles of NVIDIA-H800 are unknown for the memory that this node reports."
    )
    assert partitionable(node(gpu__product="NVIDIA-L4", gpu__count="8")) == "NVIDIA-L4 has no MIG."
    assert partitionable(node(gpu__product="NVIDIA-X9")) == "The MIG layouts of NVIDIA-X9 are unknown."
    assert partitionable(node(gpu__product="NVIDIA-A30")) == "The labels of this node do not say how many GPUs it has."


def test_queries_do_not_grow_with_classes_and_pods(
    cluster: Cluster, namespace_a: Namespace, olga: User, alice: User
) -> None:
    raw = [mirrored.ready(copy.deepcopy(one)) for one in hardware.read("mixed").nodes]
    counts = []
    for number in (1, 6):
        pods = [
            mirrored.pod(f"p{n}", node="a100-mig", namespace="elsewhere", **{"nvidia.com/mig-2g.20gb": 1})
            for n in range(number)
        ]
        mirrored.seen(cluster, Node=raw, Pod=pods, ResourceSlice=[], ResourceClaim=[], Workload=[], Job=[])
        waiting_runs.waits(namespace_a, slices(cluster, f"{number}g.10gb"), alice, name=f"w{number}")
        client = Client()
        client.force_login(olga)
        client.get(PATH)
        with CaptureQueriesContext(connection) as captured:
            assert client.get(PATH).status_code == 200
        counts.append(len(captured))
    assert counts[0] == counts[1]
    assert counts[0] <= 30


def test_the_name_of_a_layout_says_it_and_the_page_who_writes_it(cluster: Cluster, olga: User, settings: Any) -> None:
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    path, name = f"{PATH}?1g.10gb=14&3g.40gb=4", "portal-2gpu_7x1g.10gb-2gpu_2x3g.40gb"
    found = shown(olga, path)
    text = found.content.decode()
    assert f"nvidia.com/mig.config={name} " in text
    assert f"mig_config={name}&" in found.context["maintenance"]
    assert list(yaml.safe_load(found.context["parted"])["mig-configs"]) == [name]
    assert "of the ConfigMap that the ClusterPolicy names" in text
    assert "the portal adds it" not in text
    settings.MIG_LAYOUTS_CONFIG_MAP = ("gpu-operator", "mig-layouts")
    text = shown(olga, path).content.decode()
    assert "the portal adds it to the ConfigMap <code>gpu-operator/mig-layouts</code>" in text
    assert "of the ConfigMap that the ClusterPolicy names" not in text
    assert "of the ConfigMap that the ClusterPolicy names" in shown(olga, f"{PATH}?7g.80gb=1").content.decode()
