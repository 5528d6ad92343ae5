"""What values change, and the sentences with which wrong ones are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.deploy.helm.chart import Chart, named
from tests.support.shipped import DEPLOY, documents

Json = dict[str, Any]
SCHEMA = json.loads((DEPLOY / "values.schema.json").read_text())["properties"]
REFUSED: dict[str, tuple[Json, str]] = {
    "an unknown key": ({"hots": "gpu.example.org"}, "additional properties 'hots' not allowed"),
    "an unknown key of a process": (
        {"processes": {"web": {"replica": 3}}},
        "at '/processes/web': additional properties 'replica' not allowed",
    ),
    "an unknown process": (
        {"processes": {"celery": {}}},
        "at '/processes': additional properties 'celery' not allowed",
    ),
    "a count in words": (
        {"processes": {"web": {"replicas": "three"}}},
        "at '/processes/web/replicas': got string, want integer",
    ),
    "an unknown preset": ({"site": {"preset": "rancher"}}, "at '/site/preset': value must be one of '', 'aks', 'eks'"),
    "an unknown key of the profile": (
        {"site": {"profile": {"pod-anotations": ""}}},
        "at '/site/profile': additional properties 'pod-anotations' not allowed",
    ),
    "an address instead of a host": (
        {"host": "https://gpu.example.org"},
        "at '/host': 'https://gpu.example.org' does not",
    ),
    "no port": ({"network": {"data": [70000]}}, "at '/network/data/0': maximum: got 70,000, want 65,535"),
    "an image without a version": ({"images": {"portal": "localhost:5000/portal"}}, "at '/images/portal': 'localhost"),
    "an unknown Secret": (
        {"secrets": {"database": {"name": "pg"}}},
        "at '/secrets': additional properties 'database' not allowed",
    ),
    "Redis without a name": ({"secrets": {"redis": {"key": "url"}}}, "at '/secrets/redis': missing property 'name'"),
    "an issuer without TLS": ({"issuer": {"url": "http://sso.example.org"}}, "at '/issuer/url': 'http://sso"),
    "an unknown exposure": ({"exposure": {"by": "Gateway"}}, "at '/exposure/by': value must be one of 'Service'"),
    "an annotation that is a number": (
        {"exposure": {"ingress": {"annotations": {"a/b": 0}}}},
        "at '/exposure/ingress/annotations/a~1b': got number, want string",
    ),
    "a setting that is no variable": (
        {"settings": {"host": "x"}},
        "at '/settings': additional properties 'host' not allowed",
    ),
    # Sentences of the chart.
    "a secret among settings": (
        {"settings": {"SECRET_KEY": "x"}},
        "settings.SECRET_KEY is a secret and does not belong",
    ),
    "a secret of a process": (
        {"processes": {"web": {"settings": {"SECOND_FACTOR_KEY_FALLBACKS": "x"}}}},
        "processes.web.settings.SECOND_FACTOR_KEY_FALLBACKS is a secret",
    ),
    "an issuer that web cannot reach": (
        {"issuer": {"url": "https://sso.example.org"}},
        "issuer.addresses is required with issuer.url",
    ),
    "Ingress by anybody": (
        {"exposure": {"by": "Ingress"}},
        "exposure.from.namespaces or exposure.from.networks is required with exposure.by=Ingress",
    ),
    "a route of no Gateway": (
        {"exposure": {"by": "TLSRoute"}},
        "exposure.route.parentRefs is required with exposure.by=TLSRoute",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_value_is_refused_with_its_key(chart: Chart, case: str) -> None:
    values, sentence = REFUSED[case]

    assert sentence in chart.refusal(values)


def test_another_namespace_is_refused_with_the_reason(chart: Chart) -> None:
    done = chart.helm("template", "gpu-portal", str(DEPLOY), namespace="other")

    assert done.returncode
    assert "The namespace has to be gpu-portal, not other" in done.stderr


def test_all_that_is_wrong_is_said_at_once(chart: Chart) -> None:
    text = chart.refusal({"exposure": {"by": "HTTPRoute"}, "settings": {"REDIS_URL": "redis://"}})

    for part in ("exposure.from.namespaces", "exposure.route.parentRefs", "settings.REDIS_URL"):
        assert part in text


def test_helm_lint_finds_nothing(chart: Chart) -> None:
    done = chart.helm("lint", str(DEPLOY), "--strict")

    assert not done.returncode, done.stdout


def test_the_schema_knows_what_is_in_the_files() -> None:
    """A new process, Secret, preset or key of the profile has to be a value too."""
    pods = {
        one["metadata"]["name"]: one for one in documents(DEPLOY / "portal") if one["kind"] in ("Deployment", "Job")
    }
    volumes = [volume for pod in pods.values() for volume in pod["spec"]["template"]["spec"]["volumes"]]
    sources = [source for volume in volumes for source in volume.get("projected", {}).get("sources", [])]
    [site] = yaml.safe_load_all((DEPLOY / "base" / "site.yaml").read_text())

    assert SCHEMA["processes"]["properties"].keys() == pods.keys()
    assert SCHEMA["secrets"]["properties"].keys() == {"redis"} | {source["secret"]["name"] for source in sources}
    assert SCHEMA["site"]["properties"]["profile"]["properties"].keys() == site["data"].keys()
    assert set(SCHEMA["site"]["properties"]["preset"]["enum"]) == {""} | {
        one.name for one in (DEPLOY / "sites").iterdir()
    }


def test_every_value_has_a_default_that_the_schema_accepts(chart: Chart) -> None:
    defaults = yaml.safe_load((DEPLOY / "values.yaml").read_text())

    assert defaults.keys() == SCHEMA.keys() - {"global"}
    assert chart.objects(defaults) == chart.objects()


# ---- what values change ------------------------------------------------------------------------------------------


def sources(objects: list[Json], kind: str, name: str) -> list[Json]:
    volumes = named(objects, kind, name)["spec"]["template"]["spec"]["volumes"]
    return [source["secret"] for volume in volumes for source in volume.get("projected", {}).get("sources", [])]


def test_addresses_are_in_the_settings_and_pods_are_replaced(chart: Chart) -> None:
    before = chart.objects()
    after = chart.objects(
        {"host": "gpu.test", "notebooksDomain": "nb.test", "settings": {"TIME_ZONE": "Europe/Berlin"}}
    )

    written = named(after, "ConfigMap", "settings")["data"]
    unchanged = named(before, "ConfigMap", "settings")["data"].keys()
    assert written.keys() == unchanged | {"TIME_ZONE"}
    assert (written["PORTAL_URL"], written["NOTEBOOKS_DOMAIN"]) == ("https://gpu.test", "nb.test")
    assert not any("example.org" in value for value in written.values())
    for name in ("web", "doors", "worker", "watcher", "beat", "gateway"):
        marks = [
            named(one, "Deployment", name)["spec"]["template"]["metadata"]["annotations"] for one in (before, after)
        ]
        assert marks[0] != marks[1]


def test_existing_databases_and_redis_are_found_by_secret_and_key(chart: Chart) -> None:
    values = {
        "secrets": {
            "redis": {"name": "valkey", "key": "url"},
            "portal": {"name": "portal-keys"},
            "database-web": {"name": "pg-web", "key": "uri"},
            "mail": {"key": "smtp"},
        }
    }
    objects = chart.objects(values)

    redis = {"name": "valkey", "items": [{"key": "url", "path": "redis-url"}]}
    database = {"name": "pg-web", "items": [{"key": "uri", "path": "database-url"}]}
    web, worker = sources(objects, "Deployment", "web"), sources(objects, "Deployment", "worker")
    assert [redis, database] == [one for one in web if one["name"] in ("valkey", "pg-web")]
    [keys] = [one for one in web if one["name"] == "portal-keys"]
    assert {item["path"] for item in keys["items"]} == {"secret-key", "secrets-public-key"}
    assert {"name": "mail", "items": [{"key": "smtp", "path": "mail-url"}]} in worker
    [job] = [one for one in objects if one["kind"] == "Job"]
    logins = sources(objects, "Job", job["metadata"]["name"])
    assert {"name": "pg-web", "items": [{"key": "uri", "path": "database_url_web"}]} in logins


def test_a_process_has_its_own_replicas_resources_and_variables(chart: Chart) -> None:
    web = {
        "replicas": 4,
        "resources": {"limits": {"memory": "2Gi"}},
        "settings": {"DATABASE_POOL": "false", "LOG_LEVEL": "DEBUG"},
    }
    objects = chart.objects({"processes": {"web": web}, "placement": {"nodeSelector": {"pool": "portal"}}})

    spec = named(objects, "Deployment", "web")["spec"]
    [container] = spec["template"]["spec"]["containers"]
    assert spec["replicas"] == 4
    assert container["resources"] == {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}}
    written = [(one["name"], one["value"]) for one in container["env"] if one["name"] in web["settings"]]
    assert sorted(written) == [("DATABASE_POOL", "false"), ("LOG_LEVEL", "DEBUG")]
    doors = named(objects, "Deployment", "doors")["spec"]
    assert (doors["replicas"], doors["template"]["spec"]["nodeSelector"]) == (2, {"pool": "portal"})


def test_ports_of_the_site_are_open_and_no_others(chart: Chart) -> None:
    network = {"data": [6432, 26379], "apiServer": [8443], "mail": [2525], "prometheus": [9091]}
    network |= {"monitoringNamespace": "prometheus"}
    objects = chart.objects({"network": network, "exposure": {"from": {"networks": ["192.0.2.0/24"]}}})

    def ports(name: str) -> list[int]:
        return [
            port["port"] for rule in named(objects, "NetworkPolicy", name)["spec"]["egress"] for port in rule["ports"]
        ]

    assert (ports("to-data"), ports("to-cluster"), ports("to-mail")) == ([6432, 26379], [8443], [2525])
    assert ports("to-prometheus") == [9091]
    [asked] = named(objects, "NetworkPolicy", "to-prometheus")["spec"]["egress"]
    [rule] = named(objects, "NetworkPolicy", "from-monitoring")["spec"]["ingress"]
    assert (
        asked["to"]
        == rule["from"]
        == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "prometheus"}}}]
    )
    [rule] = named(objects, "NetworkPolicy", "from-outside")["spec"]["ingress"]
    assert rule["from"][0] == {"ipBlock": {"cidr": "192.0.2.0/24"}}
    assert rule["from"][1:] == [{"podSelector": {"matchLabels": {"app.kubernetes.io/component": "health"}}}]


def test_own_keys_of_the_profile_replace_those_of_the_preset(chart: Chart) -> None:
    profile = {"user-id": 2000, "pod-disk": ["h100 500", "200"], "gpu-node-labels": ""}
    data = named(chart.objects({"site": {"preset": "gke", "profile": profile}}), "ConfigMap", "site")["data"]

    assert (data["user-id"], data["pod-disk"], data["gpu-node-labels"]) == ("2000", "h100 500\n200", "")
    assert data["pod-annotations"] == "autopilot.gke.io/*\n"


def test_images_come_from_where_they_are(chart: Chart) -> None:
    digest = f"registry.test/portal@sha256:{'0' * 64}"
    images = {"portal": digest, "gateway": "registry.test/caddy:2.11.9", "pullSecrets": ["registry"]}
    pods = [one for one in chart.objects({"images": images}) if one["kind"] in ("Deployment", "Job", "Pod")]

    for one in pods:
        spec = one["spec"]["template"]["spec"] if "template" in one["spec"] else one["spec"]
        expected = images["gateway"] if one["metadata"]["name"] == "gateway" else digest
        assert [container["image"] for container in spec["containers"]] == [expected]
        assert spec["imagePullSecrets"] == [{"name": "registry"}]
