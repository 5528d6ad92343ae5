"""The component deploy/mig, as kustomize renders it: a right on one ConfigMap, and the setting that names it."""

from __future__ import annotations

from pathlib import Path

from portal.core.connections.object_names import namespaced_name
from tests.deploy.helm.chart import Chart
from tests.deploy.helm.test_same_objects import overlay


def test_the_worker_gets_one_config_map_and_nothing_else(chart: Chart, tmp_path: Path) -> None:
    before = chart.kustomized()
    changed = [one for one in chart.kustomized(overlay(tmp_path, "mig")) if one not in before]
    found = {one["kind"]: one for one in changed}
    assert len(found) == len(changed) == 3
    place = found["ConfigMap"]["data"].pop("MIG_LAYOUTS_CONFIG_MAP")
    assert found["ConfigMap"] in before, "the other settings are the same"
    role = found["Role"]
    [rule] = role["rules"]
    assert namespaced_name(place) == (role["metadata"]["namespace"], *rule.pop("resourceNames"))
    assert rule == {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"]}
    bound = found["RoleBinding"]
    assert bound["metadata"]["namespace"] == role["metadata"]["namespace"]
    assert bound["roleRef"]["name"] == role["metadata"]["name"]
    assert bound["subjects"] == [{"kind": "ServiceAccount", "name": "worker", "namespace": "gpu-portal"}]
