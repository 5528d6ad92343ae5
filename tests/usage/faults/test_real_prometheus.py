"""Faults of simulated GPUs, as their exporter serves them, in a real Prometheus: with the labels of a ServiceMonitor
and without, and with the names of DCGM 4.5 and of 4.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from accounts.models import Delivery, User
from catalog.models import GpuClass
from cluster.models import Cluster
from devcluster.monitoring.devices import GpuNode
from portal.core.connections.prometheus_server import PrometheusServer
from tenants.models import Namespace
from tests.deploy.monitoring.promtool import NEW_NAMES
from tests.devcluster.monitoring import simulated
from tests.support.processes.prometheus import Samples, prometheus_with
from tests.usage.telemetry.rows import MINUTE, held_run
from usage.faults import collection
from usage.faults.models import FaultRun, FaultSource, GpuFault

BEGIN = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MINUTES = 60
NAMESPACE = "team-a"
NODE = simulated.gpus_of("a100-1")
UUIDS = [card.uuid for card in NODE.cards]
# From these minutes on; a card whose fault is over has none.
FAULTS: Mapping[int, str] = {
    0: "",
    10: "0=xid:79,1=thermal,2=ecc:1,3=remap,3=nvlink:5",
    16: "0=xid:79,1=thermal,2=ecc:1,3=remap,3=nvlink:5",
    30: "0=xid:79,2=ecc:1,3=nvlink:5",
}
# The exporter is away in these minutes.
AWAY = range(40, 50)
POD = simulated.pod("train-1-ab1cd", units=2)


@dataclass(frozen=True)
class Site:
    """How the metrics of the exporter come to Prometheus."""

    name: str
    names: Mapping[str, str]
    labels: Callable[[Mapping[str, str]], Mapping[str, str]]


def of_service_monitor(labels: Mapping[str, str]) -> Mapping[str, str]:
    found = {f"exported_{name}" if name in ("namespace", "pod", "container") else name: value
             for name, value in labels.items()}  # fmt: skip
    return {**found, "namespace": "gpu-operator", "pod": "exporter-1", "container": "exporter"}


SITES = (
    Site("a ServiceMonitor", {}, of_service_monitor),
    Site(
        "plain labels and the names of DCGM 4.6",
        NEW_NAMES,
        lambda labels: {("hostname" if name == "Hostname" else name): value for name, value in labels.items()},
    ),
)


def scraped(node: GpuNode, site: Site) -> list[Samples]:
    """What each minute's scrape adds; the annotation of a node is its faults."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], dict[float, float]] = {}
    for minute in range(MINUTES):
        if minute in AWAY:
            continue
        moment = (BEGIN + minute * MINUTE).timestamp()
        faults = next(text for start, text in reversed(FAULTS.items()) if start <= minute)
        for family in text_string_to_metric_families(simulated.text(node, [POD], faults=faults, at=moment)):
            for sample in family.samples:
                name = sample.name.removesuffix("_total")  # which the parser adds to the name of a counter
                key = site.names.get(name, name), tuple(sorted(site.labels(sample.labels).items()))
                found.setdefault(key, {})[moment + 5] = sample.value
                found[key][moment + 35] = sample.value
    return [Samples(name, dict(labels), values) for (name, labels), values in found.items()]


@pytest.fixture(scope="module", params=SITES, ids=lambda site: site.name)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    # Prometheus marks the end of series when a scrape fails; imported samples end after 5 minutes.
    with prometheus_with(scraped(NODE, request.param), tmp_path_factory.mktemp("prometheus")) as url:
        yield PrometheusServer(url)


@pytest.fixture
def read(cluster: Cluster, server: PrometheusServer) -> Callable[[int], dict[tuple[str, int], bool]]:
    """Reads at that minute. Returns for each fault, by kind and GPU, whether it is open."""

    def reads(minute: int) -> dict[tuple[str, int], bool]:
        collection.read_faults(server=server, at=BEGIN + minute * MINUTE + timedelta(seconds=12))
        assert FaultSource.objects.get().problem == ""
        return {(row.kind, UUIDS.index(row.device)): row.cleared_at is None for row in GpuFault.objects.all()}

    return reads


OPEN_SOON = {("xid", 0): True, ("ecc_double_bit", 2): True, ("row_remap_failure", 3): True, ("nvlink_errors", 3): True}
HOT = {("hot", 1): True, ("thermal_throttling", 1): True}


def test_faults_open_and_clear_by_themselves(read: Callable[[int], dict[tuple[str, int], bool]]) -> None:
    assert read(10) == {}
    assert read(11) == OPEN_SOON, "in the minute of the fault"
    row = GpuFault.objects.get(kind="xid")
    assert (row.node, row.code, row.gpu_model, row.device) == ("a100-1", 79, NODE.cards[0].model.name, UUIDS[0])
    assert read(15) == OPEN_SOON
    assert read(17) == {**OPEN_SOON, **HOT}, "a state that lasts five minutes"
    assert read(22) == {one: one[0] in ("row_remap_failure", "hot", "thermal_throttling") for one in OPEN_SOON | HOT}
    assert read(29)["row_remap_failure", 3]
    assert set(read(37).values()) == {False}


def test_while_the_exporter_is_away_nothing_clears(read: Callable[[int], dict[tuple[str, int], bool]]) -> None:
    read(35)
    GpuFault.objects.all().delete()
    row = GpuFault(kind="xid", code=79, device=UUIDS[0], node="a100-1", value=79)
    row.cluster_id = Cluster.objects.get().pk
    row.first_seen = row.last_seen = row.measured_at = BEGIN + 35 * MINUTE
    row.save()
    for minute in (46, 48, 52, 58):
        assert read(minute) == {("xid", 0): True}, minute
    assert read(60) == {("xid", 0): False}


def test_who_held_the_gpu_is_told(
    read: Callable[[int], dict[tuple[str, int], bool]], namespace_a: Namespace, a100: GpuClass, alice: User
) -> None:
    """The pod holds the first two GPUs."""
    Namespace.objects.filter(pk=namespace_a.pk).update(name=NAMESPACE)
    namespace_a.refresh_from_db()
    run = held_run(namespace_a, a100, alice, BEGIN - 60 * MINUTE, name="train", units=2)
    for minute in range(9, 20):
        read(minute)
    assert {(one.fault.kind, one.run_id) for one in FaultRun.objects.select_related("fault")} == {
        ("xid", run.pk),
        ("hot", run.pk),
        ("thermal_throttling", run.pk),
    }
    assert sorted(mail.subject.partition(": ")[2] for mail in Delivery.objects.filter(user=alice)) == [
        "XID 79: GPU has fallen off the bus",
        "high temperature",
        "thermal throttling",
    ]
