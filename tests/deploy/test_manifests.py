"""deploy/: the portal's own pods, alert rules and Kueue's settings; asked of a real API server where one can tell."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from devcluster.client.kube import Api, path_of
from tests.support.shipped import DEPLOY, PINNED, ROOT, compose, documents, variables_of_settings

Json = dict[str, Any]
OBJECTS = list(documents(DEPLOY))
DEPLOYMENTS = {body["metadata"]["name"]: body for body in OBJECTS if body["kind"] == "Deployment"}
PODS = {body["metadata"]["name"]: body["spec"]["template"] for body in OBJECTS if body["kind"] in {"Deployment", "Job"}}
PROCESSES = {"web", "doors", "worker", "beat", "watcher"}
IN_CLUSTER = {"doors", "worker", "watcher"}
EACH_POD = pytest.mark.parametrize("name", PODS)

# Modules that say which figures there are.
FIGURES = ("portal/ops/metrics.py", "desk/health/metrics.py", "desk/health/cluster_metrics.py")


def container(name: str) -> Json:
    [only] = PODS[name]["spec"]["containers"]
    return only


def described(body: Json) -> str:
    return f"{body['kind']} {body['metadata']['name']}"


def test_all_parts_are_there() -> None:
    assert set(PODS) == PROCESSES | {"gateway", "migrate"}
    for folder in (DEPLOY / "base", DEPLOY / "portal"):
        listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
        assert sorted(listed) == sorted({path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"})


@pytest.mark.parametrize("body", OBJECTS, ids=described)
def test_the_api_server_accepts_it_as_it_is_written(admin: Api, body: Json) -> None:
    """Strict: a misspelt field would be dropped in silence otherwise."""
    params = {"dryRun": "All", "fieldManager": "test", "force": "true", "fieldValidation": "Strict"}

    admin.request("PATCH", admin._path_for(body), body, params=params, content_type="application/apply-patch+yaml")


@EACH_POD
def test_every_pod_passes_the_namespaces_own_pod_security(admin: Api, name: str) -> None:
    template = PODS[name]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": template["metadata"] | {"name": f"probe-{name}"},
        "spec": template["spec"],
    }

    admin.request("POST", path_of("v1/pods", namespace="gpu-portal"), pod, params={"dryRun": "All"})


@EACH_POD
def test_only_the_three_identities_get_a_token_and_each_its_own(name: str) -> None:
    spec = PODS[name]["spec"]

    account, token = (name, True) if name in IN_CLUSTER else (None, False)
    assert (spec.get("serviceAccountName"), spec["automountServiceAccountToken"]) == (account, token)


def test_the_notebook_key_goes_to_worker_and_doors_only() -> None:
    def secrets(name: str) -> set[str]:
        volumes = PODS[name]["spec"]["volumes"]
        projected = [source for volume in volumes for source in volume.get("projected", {}).get("sources", [])]
        return {source["secret"]["name"] for source in projected}

    assert {name for name in PODS if "notebooks" in secrets(name)} == {"worker", "doors"}
    assert {name for name in PODS if "mail" in secrets(name)} == {"worker"}
    assert {name for name in PODS if "team-secrets" in secrets(name)} == {"worker"}
    assert {name for name in PODS if "sign-in" in secrets(name)} == {"web"}
    assert {name for name in PODS if secrets(name)} == PROCESSES | {"migrate"}


def test_every_image_is_pinned() -> None:
    assert all(PINNED.match(container(name)["image"]) for name in PODS)
    [image] = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())["images"]
    assert PINNED.match(f"{image['newName']}:{image['newTag']}")


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_every_process_is_probed_and_sized(name: str) -> None:
    body = container(name)

    assert {"livenessProbe", "readinessProbe"} <= set(body)
    assert set(body["resources"]["requests"]) == {"cpu", "memory"}
    assert "memory" in body["resources"]["limits"]
    if name in PROCESSES:
        assert [body[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")] == [
            "/livez",
            "/readyz",
        ]
        assert {"name": "internal", "containerPort": 9090} in body["ports"]


def test_the_same_commands_run_under_compose_and_in_the_cluster() -> None:
    for name in PODS:
        assert container(name)["command"] == compose()["services"][name]["command"]


def test_the_settings_know_every_variable() -> None:
    [settings] = [
        body["data"] for body in OBJECTS if body["kind"] == "ConfigMap" and body["metadata"]["name"] != "site"
    ]
    written = {variable["name"] for name in PROCESSES for variable in container(name).get("env", [])}

    assert set(settings) - {"PORTAL_HOST"} | written <= variables_of_settings()  # the gateway's alone
    assert not [name for name, value in settings.items() if "KEY" in name and not value.startswith("/secrets/")]


def test_every_process_has_two_copies_on_two_hosts_if_there_are() -> None:
    copies = {name: body["spec"]["replicas"] for name, body in DEPLOYMENTS.items()}

    assert copies == {"web": 2, "doors": 2, "gateway": 2, "worker": 2, "beat": 2, "watcher": 2}
    for name in DEPLOYMENTS:
        assert PODS[name]["spec"]["topologySpreadConstraints"]


def test_web_and_beat_have_no_way_to_the_api_server() -> None:
    policies = {body["metadata"]["name"]: body["spec"] for body in OBJECTS if body["kind"] == "NetworkPolicy"}

    assert policies["closed"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    open_to_all = {port["port"] for rule in policies["names"]["egress"] for port in rule["ports"]}
    assert open_to_all == {53}
    [who] = policies["to-cluster"]["podSelector"]["matchExpressions"]
    assert set(who["values"]) == IN_CLUSTER
    # PostgreSQL or PgBouncer, Redis and its sentinels.
    to_data = {port["port"] for rule in policies["to-data"]["egress"] for port in rule["ports"]}
    assert to_data == {5432, 6432, 6379, 26379}


def test_the_worker_alone_reaches_prometheus_and_may_have_its_token() -> None:
    policies = {body["metadata"]["name"]: body["spec"] for body in OBJECTS if body["kind"] == "NetworkPolicy"}
    assert policies["to-prometheus"]["podSelector"] == {"matchLabels": {"app.kubernetes.io/component": "worker"}}
    [rule] = policies["to-prometheus"]["egress"]
    [scrapes] = policies["from-monitoring"]["ingress"]
    assert rule["to"] == scrapes["from"]
    mounted = {
        (name, source["secret"]["name"]): source["secret"].get("optional", False)
        for name in PROCESSES
        for volume in PODS[name]["spec"].get("volumes", ())
        for source in volume.get("projected", {}).get("sources", ())
        if source["secret"]["name"] == "prometheus"
    }
    assert mounted == {("worker", "prometheus"): True}


def test_single_sign_on_is_added_by_who_wants_it_and_reaches_what_they_name() -> None:
    """Without it web has no way out; with it, one to addresses and not to all: the API server has the same port."""
    assert "components" not in yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())
    [policy] = yaml.safe_load_all((DEPLOY / "issuer" / "network.yaml").read_text())
    assert policy["spec"]["podSelector"] == {"matchLabels": {"app.kubernetes.io/component": "web"}}
    [rule] = policy["spec"]["egress"]
    assert [to["ipBlock"]["cidr"] for to in rule["to"]] == ["192.0.2.10/32"], "nobody's, until it is changed"
    [patch] = yaml.safe_load_all((DEPLOY / "issuer" / "web.yaml").read_text())
    [web] = patch["spec"]["template"]["spec"]["containers"]
    written = {variable["name"]: variable["value"] for variable in web["env"]}
    assert set(written) <= variables_of_settings()
    assert not [name for name in written if "SECRET" in name and not name.endswith("_FILE")]


def test_alerts_name_figures_that_exist() -> None:
    groups = yaml.safe_load((DEPLOY / "monitoring" / "rules" / "portal-alerts.yaml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    [scrape] = yaml.safe_load((DEPLOY / "monitoring" / "scrape.yaml").read_text())
    code = "".join((ROOT / part).read_text() for part in FIGURES)
    exposed = set(re.findall(r"\"(portal_\w+)\"", code))

    for rule in rules:
        assert {"summary", "action"} == set(rule["annotations"])
        assert set(re.findall(r"\bportal_\w+", rule["expr"])) <= exposed
        for component in re.findall(r"component=\"(\w+)\"", rule["expr"]):
            assert component in DEPLOYMENTS
        assert set(re.findall(r"job=\"([\w-]+)\"", rule["expr"])) <= {scrape["job_name"]}
    expressions = " ".join(rule["expr"] for rule in rules)
    for watched in ("portal_overdue_seconds", "portal_mirror_age_seconds", 'component="worker"', 'component="watcher"'):
        assert watched in expressions


def test_kueue_counts_devices_of_jobs_and_nothing_else() -> None:
    settings = yaml.safe_load((DEPLOY / "kueue" / "manager-config.yaml").read_text())

    assert settings["integrations"] == {"frameworks": ["batch/job"]}
    assert settings["resources"] == {
        "excludeResourcePrefixes": ["cpu", "memory", "ephemeral-storage", "hugepages-", "rdma/", "vpc.amazonaws.com/"],
        "deviceClassMappings": [
            {"name": "dra.portal/h100", "deviceClassNames": ["gpu.nvidia.com"]},
            {"name": "dra.portal/mig", "deviceClassNames": ["mig.nvidia.com"]},
            {"name": "dra.portal/amd", "deviceClassNames": ["gpu.amd.com"]},
        ],
    }
    assert settings["manageJobsWithoutQueueName"] is False
    assert "waitForPodsReady" not in settings
