"""`helm template` gives the objects of `kustomize build deploy`. What differs is listed here."""

from __future__ import annotations

import re
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster.client import yaml_files
from tests.deploy.helm.chart import RELEASE, Chart, by_name, is_hook
from tests.support.shipped import DEPLOY, documents

Json = dict[str, Any]
KEEP = {"helm.sh/resource-policy": "keep"}
# Names that both tools make of a content, each in its own way; and the Job, which Helm replaces at each revision.
MADE_NAMES = {r"gateway-[0-9a-z]{10}": "gateway-*", r"migrate-1-[0-9a-f]{8}": "migrate"}


def as_kustomize(objects: list[Json]) -> dict[tuple[str, str], Json]:
    """Objects of Helm without what only Helm needs. Every difference is checked where it is removed."""
    in_base = {(one["kind"], one["metadata"]["name"]) for one in documents(DEPLOY / "base")}
    compared = [renamed(one) for one in objects if not is_hook(one)]
    for one in compared:
        if (one["kind"], one["metadata"]["name"]) in in_base:
            assert one["metadata"].pop("annotations") == KEEP
        if one["kind"] == "Deployment":
            [mark] = one["spec"]["template"]["metadata"].pop("annotations").items()
            assert mark[0] == "gpu-portal/settings"
            assert re.fullmatch(r"[0-9a-f]{64}", mark[1])
    return by_name(compared)


def of_kustomize(objects: list[Json]) -> dict[tuple[str, str], Json]:
    """Without the namespace, in which the Secrets are before a release of Helm. kustomize writes some line breaks of a
    folded text twice.
    """
    return by_name([single_breaks(renamed(one)) for one in objects if one["kind"] != "Namespace"])


def renamed(one: Json) -> Json:
    def change(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: change(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [change(inner) for inner in value]
        made = [plain for pattern, plain in MADE_NAMES.items() if re.fullmatch(pattern, str(value))]
        return made[0] if made else value

    changed: Json = change(one)
    return changed


def single_breaks(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: single_breaks(inner) if key not in ("Caddyfile", "gateway.sh") else inner
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [single_breaks(inner) for inner in value]
    return re.sub(r"\n\n+", "\n", value) if isinstance(value, str) else value


def test_without_values_both_give_the_same_objects(chart: Chart) -> None:
    ours, theirs = as_kustomize(chart.objects()), of_kustomize(chart.kustomized())

    assert ours.keys() == theirs.keys()
    for name, one in ours.items():
        assert one == theirs[name]


def test_a_packaged_chart_gives_the_same_objects(chart: Chart, tmp_path: Path) -> None:
    """Nothing that a template reads is left out, and nothing that no template reads is in it."""
    assert not chart.helm("package", str(DEPLOY), "--destination", str(tmp_path)).returncode
    [archive] = tmp_path.iterdir()

    done = chart.helm("template", RELEASE, str(archive))

    assert yaml_files.parse(done.stdout) == chart.objects()
    with tarfile.open(archive) as opened:
        parts = {part for name in opened.getnames() for part in name.split("/")}
    assert not {"scrape.yaml", "make_secrets.py", "kueue"} & parts


def test_the_rules_are_the_text_of_the_files(chart: Chart) -> None:
    """Where kustomize changes line breaks, the chart does not."""
    ours = by_name(chart.objects())
    for one in documents(DEPLOY / "base"):
        if one["kind"] == "ValidatingAdmissionPolicy":
            assert ours[one["kind"], one["metadata"]["name"]]["spec"] == one["spec"]


@pytest.mark.parametrize("preset", sorted(path.name for path in (DEPLOY / "sites").iterdir()))
def test_a_preset_gives_what_its_component_gives(chart: Chart, preset: str, tmp_path: Path) -> None:
    theirs = of_kustomize(chart.kustomized(overlay(tmp_path, f"sites/{preset}")))

    assert as_kustomize(chart.objects({"site": {"preset": preset}})) == theirs


def test_single_sign_on_gives_what_its_component_gives(chart: Chart, tmp_path: Path) -> None:
    """With the examples of issuer/ as values. Variables are a set."""
    theirs = of_kustomize(chart.kustomized(overlay(tmp_path, "issuer")))
    issuer = {"url": "https://sso.example.org/realms/example", "addresses": ["192.0.2.10/32"]}
    ours = as_kustomize(chart.objects({"issuer": issuer}))

    for web in (theirs["Deployment", "web"], ours["Deployment", "web"]):
        pod = web["spec"]["template"]["spec"]
        for items in (pod["containers"][0]["env"], pod["containers"][0]["volumeMounts"], pod["volumes"]):
            items.sort(key=lambda item: str(item["name"]))
    assert ours == theirs


def test_monitoring_gives_what_its_component_gives(chart: Chart, tmp_path: Path) -> None:
    theirs = of_kustomize(chart.kustomized(overlay(tmp_path, "monitoring")))

    assert as_kustomize(chart.objects({"monitoring": {"podMonitor": True, "dashboards": True}})) == theirs
    assert ("PodMonitor", "gpu-portal") in theirs
    dashboards = {f"gpu-portal-{path.name}": path.read_text() for path in (DEPLOY / "monitoring/dashboards").iterdir()}
    assert theirs["ConfigMap", "gpu-portal-dashboards"]["data"] == dashboards


def overlay(folder: Path, component: str) -> Path:
    """A copy of deploy/ with one component, as README.md says."""
    copy = shutil.copytree(DEPLOY, folder / "deploy")
    kustomization = yaml.safe_load((copy / "kustomization.yaml").read_text())
    (copy / "kustomization.yaml").write_text(yaml.safe_dump({**kustomization, "components": [component]}))
    return copy
