"""Each variant of the chart is accepted by an API server as it is written, and fits what it is made for.

Pods, policies and Ingress are checked field by field. Of Gateway API, cert-manager and the Prometheus Operator the API
server here knows only the kinds: their fields are compared with what their documentation requires.
"""

from __future__ import annotations

import json

import pytest
import yaml

from devcluster.client import yaml_files
from devcluster.client.kube import path_of
from tests.deploy.helm.chart import VARIANTS, Chart, Json, named
from tests.deploy.helm.conftest import Fresh
from tests.support.shipped import DEPLOY, documents

RULES = VARIANTS["monitoring"]["monitoring"]["rules"]
HOSTS = ["gpu.example.org", "*.notebooks.gpu.example.org"]
PLAIN, PASSED_THROUGH = ("ingress", "http-route"), ("node-port", "tls-route")


@pytest.fixture(scope="module", autouse=True)
def namespace(fresh: Fresh) -> None:
    [found] = documents_of_namespace()
    fresh.api.apply(found)
    fresh.api.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}, namespace="gpu-portal"
    )


def documents_of_namespace() -> list[Json]:
    return [one for one in documents(DEPLOY / "base") if one["kind"] == "Namespace"]


@pytest.mark.parametrize("name", VARIANTS)
def test_the_api_server_accepts_every_object(fresh: Fresh, name: str) -> None:
    """Strict: a misspelt field would be dropped in silence otherwise. Pods are checked by Pod Security."""
    params = {"dryRun": "All", "fieldManager": "test", "force": "true", "fieldValidation": "Strict"}
    objects = fresh.chart.objects(VARIANTS[name])

    for one in objects:
        path = fresh.api._path_for(one)
        fresh.api.request("PATCH", path, one, params=params, content_type="application/apply-patch+yaml")
    for one in [one for one in objects if one["kind"] in ("Deployment", "Job")]:
        template = one["spec"]["template"]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**template["metadata"], "name": "probe"},
            "spec": template["spec"],
        }
        pod["spec"]["serviceAccountName"] = "default"
        fresh.api.request("POST", path_of("v1/pods", namespace="gpu-portal"), pod, params={"dryRun": "All"})


def gateway(objects: list[Json]) -> tuple[Json, Json, Json, Json]:
    """The pod of the gateway, its container, its Service, and who may connect."""
    pod = named(objects, "Deployment", "gateway")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    service = named(objects, "Service", "gateway")["spec"]
    [rule] = named(objects, "NetworkPolicy", "from-outside")["spec"]["ingress"]
    return pod, container, service, rule


@pytest.mark.parametrize("name", PLAIN)
def test_where_tls_ends_before_the_gateway_all_its_parts_speak_http(chart: Chart, name: str) -> None:
    pod, container, service, rule = gateway(chart.objects(VARIANTS[name]))

    environment = {one["name"]: one.get("value") for one in container["env"]}
    assert (environment["GATEWAY_ADDRESS"], environment["GATEWAY_TLS"]) == ("http://:8080", "")
    assert container["ports"] == [{"name": "http", "containerPort": 8080}]
    assert container["readinessProbe"]["httpGet"] == {"path": "/livez", "port": "http"}
    assert container["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "http"}
    assert "tls" not in {one["name"] for one in [*pod["volumes"], *container["volumeMounts"]]}
    assert service["ports"] == [{"name": "http", "port": 80, "targetPort": "http"}]
    assert (service["type"], "externalTrafficPolicy" in service) == ("ClusterIP", False)
    # Its headers are believed, so only the controller may connect.
    assert environment["GATEWAY_PROXIES"].startswith("trusted_proxies static private_ranges")
    assert rule["ports"] == [{"protocol": "TCP", "port": 8080}]
    assert {key for peer in rule["from"] for key in peer} <= {"namespaceSelector", "ipBlock", "podSelector"}


@pytest.mark.parametrize("name", PASSED_THROUGH)
def test_where_tls_is_passed_through_it_ends_at_the_gateway(chart: Chart, name: str) -> None:
    _, container, service, rule = gateway(chart.objects(VARIANTS[name]))

    environment = {one["name"]: one.get("value") for one in container["env"]}
    assert environment["GATEWAY_TLS"] == "tls /tls/tls.crt /tls/tls.key"
    assert "GATEWAY_PROXIES" not in environment
    assert service["ports"] == [{"name": "https", "port": 443, "targetPort": "https"}]
    assert rule == {"ports": [{"protocol": "TCP", "port": 8443}]}


def test_an_ingress_has_both_names_and_their_certificate(chart: Chart) -> None:
    objects = chart.objects({**VARIANTS["ingress"], "tls": {"secret": "wildcard"}})

    ingress = named(objects, "Ingress", "gateway")
    assert ingress["metadata"]["annotations"] == {"haproxy-ingress.github.io/timeout-tunnel": "1h"}
    assert ingress["spec"]["ingressClassName"] == "haproxy"
    assert ingress["spec"]["tls"] == [{"hosts": HOSTS, "secretName": "wildcard"}]
    assert [rule["host"] for rule in ingress["spec"]["rules"]] == HOSTS
    _, container, _, rule = gateway(objects)
    [proxies] = [one["value"] for one in container["env"] if one["name"] == "GATEWAY_PROXIES"]
    assert proxies == "trusted_proxies static private_ranges 192.0.2.0/24"
    assert rule["from"][:2] == [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "haproxy"}}},
        {"ipBlock": {"cidr": "192.0.2.0/24"}},
    ]


@pytest.mark.parametrize(("name", "kind", "port"), [("http-route", "HTTPRoute", 80), ("tls-route", "TLSRoute", 443)])
def test_a_route_leads_both_names_to_the_service(chart: Chart, name: str, kind: str, port: int) -> None:
    route = named(chart.objects(VARIANTS[name]), kind, "gateway")

    assert route["apiVersion"] == "gateway.networking.k8s.io/v1"
    assert route["spec"]["hostnames"] == HOSTS
    assert route["spec"]["parentRefs"] == VARIANTS[name]["exposure"]["route"]["parentRefs"]
    [rule] = route["spec"]["rules"]
    assert rule.pop("backendRefs") == [{"name": "gateway", "port": port}]
    assert rule == ({"timeouts": {"request": "0s"}} if kind == "HTTPRoute" else {}), "streams have no end"


def test_an_older_gateway_api_gets_the_version_that_it_has(chart: Chart) -> None:
    arguments = ["--api-versions", "gateway.networking.k8s.io/v1alpha2/TLSRoute"]
    done = chart.helm("template", "gpu-portal", str(DEPLOY), *arguments, values=VARIANTS["tls-route"])

    assert "apiVersion: gateway.networking.k8s.io/v1alpha2\nkind: TLSRoute" in done.stdout


def test_cert_manager_fills_the_secret_that_the_gateway_mounts(chart: Chart) -> None:
    objects = chart.objects(VARIANTS["cert-manager"])

    certificate = named(objects, "Certificate", "gateway")
    assert certificate["apiVersion"] == "cert-manager.io/v1"
    assert certificate["spec"]["dnsNames"] == HOSTS
    issuer = {"group": "cert-manager.io", "kind": "ClusterIssuer", "name": "letsencrypt"}
    assert certificate["spec"]["issuerRef"] == issuer
    pod, *_ = gateway(objects)
    [tls] = [volume["secret"]["secretName"] for volume in pod["volumes"] if volume["name"] == "tls"]
    assert tls == certificate["spec"]["secretName"] == "portal-tls"


def test_rules_are_those_of_the_files_in_the_kind_of_the_operator(chart: Chart) -> None:
    objects = chart.objects(VARIANTS["monitoring"])

    files = {f"gpu-portal-{path.stem}": path for path in (DEPLOY / "monitoring" / "rules").iterdir()}
    rules = {one["metadata"]["name"]: one for one in objects if one["kind"] == "PrometheusRule"}
    assert rules.keys() == files.keys()
    for name, one in rules.items():
        assert one["spec"] == yaml.safe_load(files[name].read_text())
    # The command of README.md, for those who use kustomize.
    only = ["--show-only", "templates/monitoring.yaml", "--set-json", f"monitoring.rules={json.dumps([*RULES])}"]
    done = chart.helm("template", "gpu-portal", str(DEPLOY), *only)
    assert [one["spec"] for one in yaml_files.parse(done.stdout)] == [one["spec"] for one in rules.values()]
    for one in [*rules.values(), named(objects, "PodMonitor", "gpu-portal")]:
        assert one["metadata"]["labels"] == {"app.kubernetes.io/name": "gpu-portal", "release": "prometheus"}


def test_the_monitor_reads_the_port_of_every_process_under_the_labels_of_the_rules(chart: Chart) -> None:
    """As the scrape job does. Its fields are those of the operator's documentation."""
    objects = chart.objects(VARIANTS["monitoring"])

    spec = named(objects, "PodMonitor", "gpu-portal")["spec"]
    [endpoint] = spec["podMetricsEndpoints"]
    [scrape] = yaml.safe_load((DEPLOY / "monitoring" / "scrape.yaml").read_text())
    selected = {}
    for one in [one for one in objects if one["kind"] == "Deployment"]:
        pod = one["spec"]["template"]
        ports = {port["name"] for container in pod["spec"]["containers"] for port in container.get("ports", [])}
        if spec["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items() and endpoint["port"] in ports:
            selected[one["metadata"]["name"]] = pod["metadata"]["labels"]
    assert selected.keys() == {"web", "doors", "worker", "watcher", "beat"}
    assert {labels[spec["jobLabel"]] for labels in selected.values()} == {scrape["job_name"]}
    [relabelled] = endpoint["relabelings"]
    same = {"source_labels": relabelled["sourceLabels"], "target_label": relabelled["targetLabel"]}
    assert same in scrape["relabel_configs"]
    assert endpoint["port"] in {one.get("regex") for one in scrape["relabel_configs"]}
