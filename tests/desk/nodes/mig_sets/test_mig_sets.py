"""The page and the API that plan MIG layouts for several nodes: demand from four sources, what a plan breaks, and its
maintenances.
"""

from __future__ import annotations

import copy
import time
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from desk.maintenance.forms import MaintenanceForm
from desk.nodes.mig_sets.queries import demand_of, mig_sets
from devcluster.controlplane import hardware
from operations.maintenance.policy import NODES_MOST
from operations.models import Maintenance, MaintenanceNode
from tenants.models import Namespace, Tenant
from tests.support.rows import make, mirrored, running, usage, waiting_runs
from workloads.models import Run

pytestmark = pytest.mark.django_db
PATH, API = "/operators/mig-layouts", "/api/v1/mig-sets"
A100 = "NVIDIA-A100-SXM4-80GB:80:mixed"
WHOLE_NODES = ["a100-1", "a100-2", "a100-3", "a100-4"]


def slices(cluster: Cluster, profile: str = "1g.10gb", **fields: Any) -> GpuClass:
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    slug = f"mig-{profile.replace('.', '-')}"
    values: dict[str, Any] = {"slug": slug, "name": f"A100 {profile}", "node_labels": labels} | fields
    resource = f"nvidia.com/mig-{profile}"
    return make.gpu_class(cluster, partition=profile, resource=resource, **values)


def shown(olga: User, **query: Any) -> Any:
    client = Client()
    client.force_login(olga)
    found = client.get(PATH, {"set": A100, **query})
    assert found.status_code == 200
    return found


def planned(olga: User, body: dict[str, Any], status: int = 200) -> Any:
    client = Client()
    client.force_login(olga)
    found = client.post(f"{API}/plan", {"set": A100, **body}, content_type="application/json")
    assert found.status_code == status, found.content
    return found.json()


def line_of(found: Any, profile: str) -> Any:
    return next(line for line, _field in found.context["lines"] if line.profile == profile)


def test_nodes_of_a_product_are_a_set_and_others_are_left_out_with_the_reason(cluster: Cluster, olga: User) -> None:
    nodes = [mirrored.ready(copy.deepcopy(one)) for one in hardware.read("mixed").nodes]
    by_name = {one["metadata"]["name"]: one for one in nodes}
    by_name["a100-2"]["spec"] = {**by_name["a100-2"].get("spec", {}), "unschedulable": True}
    by_name["a100-3"]["status"]["conditions"][0]["status"] = "False"
    by_name["a100-mig"]["metadata"]["labels"]["nvidia.com/mig-3g.40gb.count"] = "9"
    mirrored.seen(cluster, Node=nodes, Pod=[])
    row = Maintenance.objects.create(
        cluster=cluster, kind="other", reason="x", created_by=olga, holds_from=timezone.now(),
        starts_at=timezone.now(), ends_at=timezone.now() + timedelta(hours=1),
    )  # fmt: skip
    MaintenanceNode.objects.create(maintenance=row, cluster=cluster, name="a100-4")
    found = {one.key: one for one in mig_sets(cluster)}
    one = found[A100]
    assert one.names == ("a100-1",)
    reasons = {left.name: left.reason for left in one.left_out}
    assert reasons.pop("a100-2") == "It is cordoned."
    assert reasons.pop("a100-3") == "It is not ready."
    assert reasons.pop("a100-4") == "It is in a maintenance, or one is planned."
    assert "its layout is unknown" in reasons.pop("a100-mig")
    assert set(reasons) == {"a100-shared", "a100-sliced", "a100-mps", "mig-sliced"}
    assert set(reasons.values()) == {"Its units are shared: plan its layout on its own page."}
    single = found["NVIDIA-A100-SXM4-80GB:80:single:4"]
    assert [(node.name, node.offers) for node in single.nodes] == [("a100-mig-single", {"1g.10gb": 28})]
    dra = found["NVIDIA-H100-80GB-HBM3:80:mixed"]
    assert [left.reason for left in dra.left_out] == ["NVIDIA's device plugin does not offer its GPUs."]


def test_demand_is_grants_requests_use_and_queue(
    cluster: Cluster, namespace_a: Namespace, team_a: Tenant, olga: User, alice: User, bob: User
) -> None:
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    one = slices(cluster)
    make.grant(team_a, one, units=4)
    later = timezone.now() + timedelta(days=40)
    # Another starts when the first is over: together they are never granted.
    make.grant(team_a, one, units=6, since=later, until=later + timedelta(days=30))
    usage.file(team_a, alice, **{one.slug.replace("-", "_"): 9})
    usage.looked(one, hours=100)
    # In 4 of 100 hours 40 were used: the others say what is enough.
    for back in range(1, 100):
        usage.used(namespace_a, one, peak=40 if back <= 4 else 12, total=60, back=back)
    waiting_runs.waits(namespace_a, one, alice, units=3)
    line = line_of(shown(olga), "1g.10gb")
    assert (line.now, line.elsewhere, line.granted, line.requested, line.used, line.queued) == (7, 28, 6, 5, 12, 3)


def test_the_larger_of_what_is_promised_and_what_is_needed_is_proposed(
    cluster: Cluster, namespace_a: Namespace, team_a: Tenant, a100: GpuClass, olga: User, alice: User
) -> None:
    """Other nodes serve a part of it: a100-shared and others have no units of these classes."""
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    make.grant(team_a, a100, units=5)
    usage.looked(a100, hours=10)
    for back in range(1, 10):
        usage.used(namespace_a, a100, peak=9, total=60, back=back)
    waiting_runs.waits(namespace_a, a100, alice, units=4)
    some = line_of(shown(olga, nodes=["a100-1", "a100-2"]), "whole")
    assert (some.now, some.elsewhere, some.proposed, some.floor) == (8, 8, 9 + 4 - 8, 0)
    every = line_of(shown(olga), "whole")
    assert (every.now, every.elsewhere, every.proposed, every.floor) == (16, 0, 13, 5)


def test_unknown_is_shown_and_counts_as_nothing(
    cluster: Cluster, a100: GpuClass, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirrored.hardware_seen(cluster)
    monkeypatch.setattr("desk.nodes.mig_sets.queries.waiting_units", lambda _cluster: None)
    found = shown(olga)
    line = line_of(found, "whole")
    assert (line.used, line.queued, line.proposed) == (None, None, 0)
    assert found.content.decode().count('<td class="r">unknown</td>') == 2


def test_grants_stay_whatever_is_wanted(cluster: Cluster, team_a: Tenant, a100: GpuClass, olga: User) -> None:
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    make.grant(team_a, a100, units=16)
    # 28 of these are on another node and 7 on a100-mig: 5 more are granted than exist.
    make.grant(team_a, slices(cluster), units=40)
    nothing = {"whole": 0, "1g.10gb": 0}
    found = shown(olga, **nothing)
    assert [node.node.name for node in found.context["plan"].changed] == ["a100-mig"]
    assert found.context["broken"] == []
    # Without that node, the five cannot exist: nobody else loses a GPU for them.
    api = planned(olga, {"wanted": nothing | {"3g.40gb": 40}, "nodes": WHOLE_NODES})
    assert [node["name"] for node in api["nodes"] if node["is_changed"]] == []
    assert [(one["granted"], one["now"], one["then"]) for one in api["broken"]] == [(40, 35, 35)]


def test_a_grant_that_cannot_be_honoured_is_named_with_both_numbers(
    cluster: Cluster, team_a: Tenant, a100: GpuClass, olga: User
) -> None:
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    make.grant(team_a, a100, units=12)
    slices(cluster)
    wanted = {"1g.10gb": 56, "whole": 0}
    assert planned(olga, {"wanted": wanted, "nodes": WHOLE_NODES})["broken"] == []
    found = shown(olga, nodes=WHOLE_NODES, ignores_grants="on", **wanted)
    [(one, sentence)] = found.context["broken"]
    assert (one.need.slug, sentence) == (a100.slug, "12 granted, 8 would exist; 16 exist now.")
    assert sentence in found.content.decode()
    api = planned(olga, {"wanted": wanted, "nodes": WHOLE_NODES, "keeps_grants": False})
    assert api["broken"] == [{"gpu_class": a100.slug, "granted": 12, "now": 16, "then": 8}]
    # Also while the nodes change, what is granted is looked at.
    assert [step["missing"] for step in api["steps"]] == [{}, {"whole": 4}]


def test_classes_that_share_units_are_looked_at_together(cluster: Cluster, team_a: Tenant, olga: User) -> None:
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    one, other = slices(cluster, "3g.40gb"), slices(cluster, "3g.40gb", slug="large")
    make.grant(team_a, one, units=3)
    make.grant(team_a, other, units=2)
    nothing = {"3g.40gb": 0, "whole": 4}
    found = shown(olga, nodes=["a100-mig"], ignores_grants="on", **nothing)
    sentences = {broken.need.slug: sentence for broken, sentence in found.context["broken"]}
    assert set(sentences) == {one.slug, "large"}
    assert sentences["large"] == "5 granted together with A100 3g.40gb, 0 would exist; 4 exist now."


def test_a_class_that_chooses_a_layout_by_name_loses_the_nodes_that_change(
    cluster: Cluster, team_a: Tenant, olga: User
) -> None:
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    one = slices(cluster, "3g.40gb", node_labels={"nvidia.com/mig.config": "all-balanced-one-me"})
    make.grant(team_a, one, units=2)
    api = planned(olga, {"nodes": ["a100-mig"], "wanted": {"3g.40gb": 8}})
    assert api["broken"] == [{"gpu_class": one.slug, "granted": 2, "now": 4, "then": 0}]
    assert planned(olga, {"nodes": ["a100-mig"], "wanted": {"3g.40gb": 4}})["broken"] == []


def test_runs_on_nodes_that_change_are_named_with_team_and_end(
    cluster: Cluster, namespace_a: Namespace, a100: GpuClass, olga: User, alice: User
) -> None:
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    ends = timezone.now() + timedelta(hours=5)
    for name, node in (("train", "a100-1"), ("other", "a100-3")):
        Run.objects.filter(workload=waiting_runs.runs(namespace_a, a100, alice, name, node=node)).update(ends_at=ends)
    wanted = {"1g.10gb": 28, "whole": 0}
    api = planned(olga, {"wanted": wanted, "nodes": ["a100-1", "a100-3"]})
    # One of the two suffices; both have a run, and the first by name changes.
    assert [node["name"] for node in api["nodes"] if node["is_changed"]] == ["a100-1"]
    [run] = api["runs"]
    assert (run["team"], run["workload"], run["nodes"]) == (namespace_a.tenant.slug, "train", ["a100-1"])
    assert run["ends_at"] == ends.isoformat().replace("+00:00", "Z")
    # With a free node beside them, nobody is moved.
    assert planned(olga, {"wanted": wanted, "nodes": WHOLE_NODES[:3]})["runs"] == []
    page = shown(olga, nodes=["a100-1", "a100-3"], whole=0, **{"1g.10gb": 28})
    assert "train" in page.content.decode()
    assert [one.name for one in page.context["found"].runs] == ["train"]


def test_pods_of_others_are_named(cluster: Cluster, olga: User) -> None:
    pod = mirrored.pod("p", node="a100-1", namespace="elsewhere", **{"nvidia.com/gpu": 1})
    mirrored.hardware_seen(cluster, Pod=[pod], Workload=[], Job=[])
    slices(cluster)
    api = planned(olga, {"wanted": {"1g.10gb": 28}, "nodes": ["a100-1"]})
    assert api["other_pods"] == ["elsewhere/p"]


def test_maintenances_follow_each_other_so_that_grants_stay(
    cluster: Cluster, team_a: Tenant, a100: GpuClass, olga: User, settings: Any
) -> None:
    """Of 16 GPUs 8 are granted: two nodes of four can change together, without one of these missing."""
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    slices(cluster)
    make.grant(team_a, a100, units=8)
    body = {"wanted": {"1g.10gb": 7 * 8, "whole": 8}, "nodes": WHOLE_NODES}
    api = planned(olga, body)
    assert [step["nodes"] for step in api["steps"]] == [["a100-1", "a100-2"]]
    assert api["steps"][0]["missing"] == {}
    assert api["steps"][0]["expected"] == {"nvidia.com/mig-1g.10gb": 28}
    assert api["steps"][0]["mig_config"] == "portal-4gpu_7x1g.10gb"
    settings.MIG_LAYOUTS_CONFIG_MAP = ("gpu-operator", "mig-layouts")
    text = shown(olga, nodes=WHOLE_NODES, whole=8, **{"1g.10gb": 56}).content.decode()
    assert (
        "The portal adds the layout <code>portal-4gpu_7x1g.10gb</code> to <code>gpu-operator/mig-layouts</code>" in text
    )


def test_a_step_without_which_granted_units_are_missing_says_so(
    cluster: Cluster, team_a: Tenant, olga: User, a100: GpuClass
) -> None:
    """The only node with what is granted gets more of it: while it changes, there is none."""
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    make.grant(team_a, slices(cluster, "3g.40gb"), units=4)
    found = shown(olga, nodes=["a100-mig"], **{"3g.40gb": 8, "1g.10gb": 0, "2g.20gb": 0, "1g.10gb+me": 0, "whole": 0})
    [step] = found.context["steps"]
    assert step["step"].short == {"3g.40gb": 4}
    assert step["short"] in found.content.decode()
    assert step["short"] == "Granted units are missing while these nodes are closed: 4 × 3g.40gb."


def test_the_link_fills_the_form_of_a_maintenance(cluster: Cluster, olga: User, a100: GpuClass) -> None:
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    slices(cluster)
    found = shown(olga, nodes=["a100-1", "a100-2"], whole=0, **{"1g.10gb": 56})
    [step] = found.context["steps"]
    client = Client()
    client.force_login(olga)
    page = client.get(f"/maintenance/new?{step['query']}")
    assert page.context["chosen"] == ["a100-1", "a100-2"]
    sent = parse_qs(step["query"])
    values = {name: values[0] for name, values in sent.items()} | {"nodes": sent["nodes"], "stuck_minutes": 30}
    form = MaintenanceForm(values, cluster=cluster)
    assert form.is_valid(), form.errors
    answer = client.post("/maintenance/new", {**sent, "stuck_minutes": 30})
    assert answer.status_code == 302
    row = Maintenance.objects.get()
    assert row.expected == {"nvidia.com/mig-1g.10gb": 28}
    assert (row.mig_config, row.holds_from) == ("portal-4gpu_7x1g.10gb", row.starts_at)
    assert sorted(row.nodes.values_list("name", flat=True)) == ["a100-1", "a100-2"]
    assert urlsplit(answer["Location"]).path == f"/maintenance/{row.pk}"
    # Their layout is decided now.
    assert "a100-1" not in shown(olga).context["names"]


def test_gpus_without_mig_are_a_layout(cluster: Cluster, olga: User, a100: GpuClass) -> None:
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    api = planned(olga, {"nodes": ["a100-mig"], "wanted": {"whole": 4}})
    [step] = api["steps"]
    assert (step["mig_config"], step["expected"]) == ("portal-4gpu_whole", {"nvidia.com/gpu": 4})
    groups = yaml.safe_load(step["configuration"])["mig-configs"]["portal-4gpu_whole"]
    assert groups == [{"devices": [0, 1, 2, 3], "mig-enabled": False}]


def test_strategy_single_gives_a_node_one_profile(cluster: Cluster, olga: User) -> None:
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    found = planned(olga, {"set": "NVIDIA-A100-SXM4-80GB:80:single:4", "wanted": {"2g.20gb": 5, "1g.10gb": 0}})
    [step] = found["steps"]
    assert (step["mig_config"], step["expected"]) == ("portal-4gpu_3x2g.20gb", {"nvidia.com/gpu": 12})


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"set": "no"}, "set"),
        ({"nodes": ["a100-shared"]}, "nodes"),
        ({"wanted": {"9g.90gb": 1}}, "wanted"),
    ],
)
def test_what_the_api_refuses(cluster: Cluster, olga: User, body: dict[str, Any], field: str) -> None:
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    found = planned(olga, body, status=422)
    assert (found["code"], found["field"]) == ("invalid", field)


def test_a_wrong_number_is_said_at_its_field(cluster: Cluster, olga: User) -> None:
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    found = shown(olga, **{"2g.20gb": "x"})
    assert "2g.20gb: enter a whole number from 0 to 100000" in found.content.decode()
    assert "plan" not in found.context


def test_without_nodes_with_mig_nothing_is_planned(cluster: Cluster, olga: User) -> None:
    mirrored.seen(cluster, Node=[])
    assert "No layouts can be planned." in shown(olga).content.decode()


def test_queries_do_not_grow_with_nodes_classes_and_runs(
    cluster: Cluster, namespace_a: Namespace, a100: GpuClass, olga: User, alice: User
) -> None:
    counts = []
    for number, profile in ((1, "1g.10gb"), (6, "2g.20gb")):
        mirrored.hardware_seen(cluster, Workload=[], Job=[])
        slices(cluster, profile)
        for at in range(number):
            waiting_runs.runs(namespace_a, a100, alice, f"r{number}-{at}", node="a100-1")
            running.workload(namespace_a, a100, name=f"q{number}-{at}", by=alice, units=1, image=waiting_runs.IMAGE)
        client = Client()
        client.force_login(olga)
        client.get(PATH, {"set": A100})
        with CaptureQueriesContext(connection) as captured:
            assert client.get(PATH, {"set": A100}).status_code == 200
        counts.append(len(captured))
    assert counts[0] == counts[1]
    assert counts[0] <= 32


def alike(number: int) -> list[dict[str, Any]]:
    template = next(one for one in hardware.read("mixed").nodes if one["metadata"]["name"] == "a100-mig")
    nodes = []
    for at in range(number):
        raw = copy.deepcopy(template)
        raw["metadata"]["name"] = f"node-{at}"
        nodes.append(mirrored.ready(raw))
    return nodes


def test_more_nodes_than_are_planned_together_are_refused_with_both_numbers(cluster: Cluster, olga: User) -> None:
    """By default all nodes are planned: that is refused too, on the page and in the API. A choice of them is not."""
    mirrored.seen(cluster, Node=alike(NODES_MOST + 1), Pod=[], Workload=[], Job=[])
    sentence = f"{NODES_MOST + 1} nodes would be planned together. Choose at most {NODES_MOST} of them."
    every = [f"node-{at}" for at in range(NODES_MOST + 1)]
    for query in ({}, {"nodes": every}):
        page = shown(olga, **query)
        assert sentence in page.content.decode()
        assert "plan" not in page.context
        assert "form" not in page.context
    refused = planned(olga, {}, status=422)
    assert (refused["code"], refused["field"], refused["message"]) == ("invalid", "nodes", sentence)
    page = shown(olga, nodes=every[1:])
    assert len(page.context["plan"].nodes) == NODES_MOST
    assert f"At most {NODES_MOST} of {NODES_MOST + 1}." in page.content.decode()
    assert len(planned(olga, {"nodes": every[1:]})["nodes"]) == NODES_MOST


def test_a_layout_that_was_not_searched_is_unknown_and_not_impossible(
    cluster: Cluster, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("catalog.mig.sets.planning._HOLD_LIMIT", 0)
    mirrored.seen(cluster, Node=alike(1), Pod=[], Workload=[], Job=[])
    [one] = mig_sets(cluster)
    assert [left.reason for left in one.left_out] == [
        "Whether its GPUs can have what its labels say is unknown: too many nodes have layouts of their own."
    ]


def test_32_nodes_are_planned_in_about_a_second(cluster: Cluster, a100: GpuClass, olga: User) -> None:
    """The limit leaves room for a busy machine."""
    mirrored.seen(cluster, Node=alike(32), Pod=[], Workload=[], Job=[])
    for profile in ("1g.10gb", "2g.20gb", "3g.40gb"):
        slices(cluster, profile)
    client = Client()
    client.force_login(olga)
    query = {"set": A100, "1g.10gb": 333, "2g.20gb": 77, "3g.40gb": 61, "7g.80gb": 9, "whole": 17}
    client.get(PATH, query)
    before = time.process_time()
    assert client.get(PATH, query).context["plan"].changed
    assert time.process_time() - before < 3


def test_use_of_a_class_counts_from_its_first_hour_and_idle_hours_after_it(
    cluster: Cluster, namespace_a: Namespace, a100: GpuClass
) -> None:
    mirrored.hardware_seen(cluster, Workload=[], Job=[])
    usage.looked(a100, hours=30 * 24)
    for back in (1, 2, 3, 50):
        usage.used(namespace_a, a100, peak=8, total=60, back=back)
    [one] = [known for known in mig_sets(cluster) if known.key == A100]
    used = {line.profile: line.used for line in demand_of(cluster, one, one.names)}
    # 4 of 50 hours: more than one in twenty.
    assert used["whole"] == 8
    usage.used(namespace_a, a100, peak=1, total=60, back=200)
    used = {line.profile: line.used for line in demand_of(cluster, one, one.names)}
    # 4 of 200 hours.
    assert used["whole"] == 0
