"""Every query of the dashboards, asked of a real Prometheus, returns the series that its panel claims to show."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import chain, combinations
from pathlib import Path
from types import EllipsisType
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from devcluster.controlplane.programs import Programs
from portal.ops import metrics
from tenants.models import Namespace
from tests.deploy.monitoring import scene
from tests.deploy.monitoring.stored import Prometheus, stored
from tests.support.http.metrics import figures
from tests.support.rows import mirrored, running
from tests.support.shipped import DEPLOY
from workloads.models import Run

Json = dict[str, Any]
# Labels, as text → value; `...` is any number above 0.
Found = dict[str, float | EllipsisType]
DASHBOARDS = {path.stem: json.loads(path.read_text()) for path in (DEPLOY / "monitoring" / "dashboards").iterdir()}
BEGIN_S = 1_767_571_200
END_S = BEGIN_S + 60 * (scene.MINUTES - 1)
GPU, SLICE = "resource=nvidia_com_gpu", "resource=nvidia_com_mig_1g_10gb"
TRAIN, NOTEBOOK = "namespace=team-a,pod=train-1", "namespace=team-a,pod=nb-1"
IDLE: Found = {f"namespace=team-a,node=a100-1,pod=nb-1,{GPU}": 1}


def panels(dashboard: Json) -> list[Json]:
    found: list[Json] = dashboard["panels"]
    return found


def queries() -> Iterator[tuple[tuple[str, str, str], str]]:
    """(dashboard, panel, reference) and the query."""
    for name, dashboard in DASHBOARDS.items():
        for panel in panels(dashboard):
            for target in panel["targets"]:
                yield (name, panel["title"], target["refId"]), target["expr"]


def variables(dashboard: Json) -> dict[str, Json]:
    return {one["name"]: one for one in dashboard["templating"]["list"]}


def interpolated(query: str, values: dict[str, str]) -> str:
    """As Grafana replaces $name and ${name}."""
    return re.sub(r"\$(?:(\w+)|\{(\w+)\})", lambda match: values[match[1] or match[2]], query)


def told(labels: dict[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def of_cluster(portal: dict[tuple[str, ...], float]) -> dict[tuple[str, str], Found]:
    requests = Counter[str]()
    methods = set()
    for (name, *labels), value in portal.items():
        if name == "portal_http_requests_total":
            method, _, status = labels
            methods.add(method)
            # Two processes, and each minute as many requests as at first.
            requests[status] += 2 * value / 60  # type: ignore[assignment]
    states = ("refused", "foreign", "missing", "drifted", "orphan")
    return {
        ("Units on nodes", "A"): {GPU: 4, SLICE: 7},
        ("Idle pods", "A"): {"": 1},
        ("Alerts that fire", "A"): {"alertname=GpuHeldIdle,severity=ticket": 1},
        ("Units held and offered", "A"): {GPU: 2, SLICE: 2},
        ("Units held and offered", "B"): {GPU: 4, SLICE: 7},
        ("Devices held and busy", "A"): {"": 3},
        ("Devices held and busy", "B"): {"": 0.9 + 0.01 + 0.5},
        ("Memory of held devices", "A"): {"": 62_000 * scene.MIB},
        ("Memory of held devices", "B"): {"": 108_000 * scene.MIB},
        ("Power by model", "A"): {"modelName=A100": 850},
        ("Hottest GPU of each node", "A"): {"hostname=a100-1": 43, "hostname=mig-1": 60},
        ("Idle pods and what they hold", "A"): IDLE,
        ("Workloads in queues", "A"): {"status=active": 2, "status=inadmissible": 4},
        ("Workloads in queues", "B"): {"": 4},
        ("Portal: delays", "A"): {"": max(at for key, at in portal.items() if key[0] == "portal_overdue_seconds")},
        ("Portal: delays", "B"): {
            f"cluster={key[1]}": at for key, at in portal.items() if key[0] == "portal_mirror_age_seconds"
        },
        ("Portal: objects out of sync", "A"): {f"state={one}": portal["portal_objects", one] for one in states},
        ("Portal: requests", "A"): {f"status={one}": value for one, value in requests.items()},
        ("Portal: 95th percentile of response times", "A"): {f"method={one}": ... for one in methods},
    }


def of_team(slug: str) -> dict[tuple[str, str], Found]:
    small, large = scene.FLAVOR.format(slug=slug), scene.OTHER_FLAVOR.format(slug=slug)
    return {
        ("Units held", "A"): {GPU: 2},
        ("Units of idle pods", "A"): {GPU: 1},
        ("Power of whole GPUs", "A"): {"": 300},
        ("Activity of each pod's devices", "A"): {TRAIN: 0.9, NOTEBOOK: 0.01},
        ("GPU memory used by each pod", "A"): {TRAIN: 0.375, NOTEBOOK: 0.375},
        ("Quota and use", "A"): {f"cluster_queue=team-a,flavor={small}": 2, f"cluster_queue=team-a,flavor={large}": 1},
        ("Quota and use", "B"): {f"cluster_queue=team-a,flavor={small}": 4, f"cluster_queue=team-a,flavor={large}": 7},
        ("Workloads in the queue", "A"): {
            "cluster_queue=team-a,status=active": 2,
            "cluster_queue=team-a,status=inadmissible": 1,
        },
        ("Workloads in the queue", "B"): {"cluster_queue=team-a": 2},
        ("Idle pods and what they hold", "A"): IDLE,
    }  # fmt: skip


def of_class(slug: str, portal: dict[tuple[str, ...], float]) -> dict[tuple[str, str], Found]:
    waits = {key[2]: value for key, value in portal.items() if key[:2] == ("portal_queue_wait_seconds", slug)}
    return {
        ("Free units", "A"): {"": portal["portal_class_free_units", slug]},
        ("Units used and allocated to teams", "A"): {"": 4},
        ("Units used and allocated to teams", "B"): {"": 8},
        ("Runs without aligned CPU and GPUs", "A"): {"": 60},
        ("Queue wait", "A"): {f"quantile={quantile}": value for quantile, value in waits.items()},
        ("Units used by each team", "A"): {"cluster_queue=team-a": 2, "cluster_queue=team-b": 2},
        ("Activity of each pod's devices", "A"): {TRAIN: 0.9, NOTEBOOK: 0.01},
        ("GPU memory used by each pod", "A"): {TRAIN: 30_000 * scene.MIB, NOTEBOOK: 30_000 * scene.MIB},
        ("Idle pods and what they hold", "A"): IDLE,
    }  # fmt: skip


@pytest.fixture
def exposition(a100: GpuClass, namespace_a: Namespace, alice: User, client: Client) -> str:
    """The portal's own, with a value for each of its figures: a run that waited, and one that its node refused."""
    mirrored.hardware_seen(a100.cluster)
    client.get("/livez")
    now = timezone.now()
    running.workload(namespace_a, a100, name="one", by=alice)
    ended = {"ended_at": now, "outcome": "failed", "reason": "topology_refused"}
    Run.objects.update(requested_at=now - timedelta(seconds=100), admitted_at=now - timedelta(seconds=40), **ended)
    return metrics.exposition().decode()


def test_each_query_returns_what_its_panel_claims(
    exposition: str, a100: GpuClass, monitoring: Programs, tmp_path: Path
) -> None:
    slug, said = a100.slug, figures(exposition.encode())
    values = {"namespace": "team-a", "class": slug}
    expected = {
        **{("cluster", *key): found for key, found in of_cluster(said).items()},
        **{("team", *key): found for key, found in of_team(slug).items()},
        **{("class", *key): found for key, found in of_class(slug, said).items()},
    }
    sources = (scene.dcgm(), scene.kube_state(slug), scene.kueue(slug), scene.prometheus(), scene.portal(exposition))
    text = scene.openmetrics(chain(*sources), begin_s=BEGIN_S)

    with stored(monitoring, tmp_path, text, begin_s=BEGIN_S, end_s=END_S) as prometheus:
        answers = {key: prometheus.query(interpolated(query, values), END_S) for key, query in queries()}
        # Before pods are known for 30 minutes it is unknown how many are idle: no value, not 0.
        early = prometheus.query(dict(queries())["cluster", "Idle pods", "A"], BEGIN_S + 20 * 60)
        choices = {name: offered(prometheus, dashboard) for name, dashboard in DASHBOARDS.items()}

    found = {key: {told(labels): value for labels, value in answer} for key, answer in answers.items()}
    assert found.keys() == expected.keys()
    assert all(expected.values()), "a query may not be expected to return nothing"
    assert {key: one for key, one in found.items() if not agrees(one, expected[key])} == {}
    assert early == []
    assert choices == {"cluster": {}, "team": {"namespace": {"team-a", "team-b"}}, "class": {"class": {slug}}}


def agrees(found: dict[str, float], expected: Found) -> bool:
    return found.keys() == expected.keys() and all(
        found[key] > 0 if isinstance(value, EllipsisType) else found[key] == pytest.approx(value)
        for key, value in expected.items()
    )


def offered(prometheus: Prometheus, dashboard: Json) -> dict[str, set[str]]:
    """What the variables of a dashboard offer."""
    found = {}
    for name, variable in variables(dashboard).items():
        if variable["type"] == "query":
            match = re.fullmatch(r"label_values\(([\w:]+), (\w+)\)", variable["query"]["query"])
            assert match
            found[name] = prometheus.label_values(match[1], match[2], BEGIN_S, END_S)
    return found


# ---- what Grafana needs ------------------------------------------------------------------------------------------


def test_dashboards_read_the_chosen_prometheus_and_nothing_else() -> None:
    source = {"type": "prometheus", "uid": "${datasource}"}
    for dashboard in DASHBOARDS.values():
        assert variables(dashboard)["datasource"]["type"] == "datasource"
        asked = [*panels(dashboard), *(one for one in variables(dashboard).values() if one["type"] == "query")]
        assert [one["datasource"] for one in asked] == [source] * len(asked)
        assert {panel["type"] for panel in panels(dashboard)} <= {"stat", "table", "timeseries"}
        assert "://" not in json.dumps(dashboard)
        used = set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard)))
        assert used == variables(dashboard).keys()


def test_every_panel_has_a_unit_and_a_place_of_its_own() -> None:
    assert len({dashboard["uid"] for dashboard in DASHBOARDS.values()}) == len(DASHBOARDS) == 3
    for dashboard in DASHBOARDS.values():
        found = panels(dashboard)
        assert len({panel["id"] for panel in found}) == len({panel["title"] for panel in found}) == len(found)
        assert all(panel["fieldConfig"]["defaults"]["unit"] for panel in found)
        cells = [set(covered(panel["gridPos"])) for panel in found]
        assert not [1 for one, other in combinations(cells, 2) if one & other]
        assert max(x for one in cells for x, _ in one) < 24


def covered(at: dict[str, int]) -> Iterator[tuple[int, int]]:
    for x in range(at["x"], at["x"] + at["w"]):
        for y in range(at["y"], at["y"] + at["h"]):
            yield x, y
