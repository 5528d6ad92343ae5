"""docker-compose.yml: which service gets which secret, network and version. The test needs no engine."""

from __future__ import annotations

import subprocess

import pytest
import yaml

from tests.support.shipped import PINNED, ROOT, compose, variables_of_settings

COMPOSE = compose()
SERVICES = COMPOSE["services"]
PROCESSES = {"web", "doors", "worker", "beat", "watcher"}
IN_CLUSTER = {"doors", "worker", "watcher"}


def environment(service: str) -> dict[str, str]:
    return SERVICES[service].get("environment", {})


def test_all_parts_are_there() -> None:
    assert set(SERVICES) == PROCESSES | {"postgres", "redis", "migrate", "gateway"}


@pytest.mark.parametrize("service", SERVICES)
def test_every_image_is_pinned(service: str) -> None:
    assert PINNED.match(SERVICES[service]["image"])


@pytest.mark.parametrize("service", SERVICES)
def test_everything_that_stays_up_has_a_health_check(service: str) -> None:
    check = SERVICES[service]["healthcheck"]

    if service == "migrate":  # it ends by itself; the others wait for its success
        assert (check, SERVICES[service]["restart"]) == ({"disable": True}, "no")
    else:
        assert check["test"][0] in {"CMD", "CMD-SHELL"}
        assert SERVICES[service]["restart"] == "unless-stopped"


def test_only_the_three_identities_hold_a_kubeconfig_and_each_its_own() -> None:
    for service in SERVICES:
        mounted = {secret for secret in SERVICES[service].get("secrets", []) if secret.startswith("kubeconfig")}
        path = environment(service).get("PORTAL_KUBECONFIG")
        if service in IN_CLUSTER:
            assert (mounted, path) == ({f"kubeconfig_{service}"}, f"/run/secrets/kubeconfig_{service}")
        else:
            assert (mounted, path) == (set(), None)


def test_the_notebook_key_goes_to_worker_and_doors_only() -> None:
    assert {s for s in SERVICES if "notebook_token_key" in SERVICES[s].get("secrets", [])} == {"worker", "doors"}
    assert {s for s in SERVICES if "NOTEBOOK_TOKEN_KEY_FILE" in environment(s)} == {"worker", "doors"}


def test_web_can_seal_and_the_worker_alone_can_open() -> None:
    for half, service in (("public", "web"), ("private", "worker")):
        name = f"secrets_{half}_key"
        assert {s for s in SERVICES if name in SERVICES[s].get("secrets", [])} == {service}
        assert {s for s in SERVICES if f"{name.upper()}_FILE" in environment(s)} == {service}


def test_web_alone_can_compute_one_time_codes() -> None:
    assert {s for s in SERVICES if "second_factor_key" in SERVICES[s].get("secrets", [])} == {"web"}
    assert {s for s in SERVICES if "SECOND_FACTOR_KEY_FILE" in environment(s)} == {"web"}


def test_only_who_needs_it_reaches_the_cluster() -> None:
    assert {s for s in SERVICES if "cluster" in SERVICES[s]["networks"]} == IN_CLUSTER | {"gateway"}
    assert COMPOSE["networks"]["data"] == COMPOSE["networks"]["front"] == {"internal": True}
    assert {s for s in SERVICES if "ports" in SERVICES[s]} == {"gateway"}
    assert "data" not in SERVICES["gateway"]["networks"]


def test_single_sign_on_is_web_alone_and_its_secret_a_file() -> None:
    added = yaml.safe_load((ROOT / "docker-compose.issuer.yml").read_text())
    [(service, body)] = added["services"].items()
    assert (service, body["networks"]) == ("web", ["issuer"])
    assert set(body["environment"]) <= variables_of_settings()
    assert {f"/run/secrets/{name}" for name in body["secrets"]} == {
        value for name, value in body["environment"].items() if name.endswith("_FILE")
    }
    assert not [name for service in SERVICES for name in environment(service) if name.startswith("OIDC")]


def test_secrets_are_files_outside_the_repository() -> None:
    for name, secret in COMPOSE["secrets"].items():
        assert secret == {"file": f"./secrets/{name}"}
    ignored = subprocess.run(["git", "check-ignore", "-q", "secrets/secret_key"], cwd=ROOT, check=False)
    assert ignored.returncode == 0


@pytest.mark.parametrize("service", SERVICES)
def test_no_secret_stands_in_the_environment(service: str) -> None:
    for name, value in environment(service).items():
        if any(word in name for word in ("KEY", "PASSWORD", "DATABASE_URL", "REDIS_URL", "KUBECONFIG", "EMAIL_URL")):
            assert value.removeprefix("/run/secrets/") in SERVICES[service]["secrets"], name


@pytest.mark.parametrize("service", sorted(PROCESSES | {"migrate"}))
def test_the_settings_know_every_variable(service: str) -> None:
    assert set(environment(service)) <= variables_of_settings()


@pytest.mark.parametrize("service", sorted(PROCESSES | {"migrate", "gateway"}))
def test_processes_run_without_privileges(service: str) -> None:
    body = SERVICES[service]

    assert body["read_only"] is True
    assert body["cap_drop"] == ["ALL"]
    assert body["security_opt"] == ["no-new-privileges:true"]


def test_nothing_starts_before_the_migration() -> None:
    for service in PROCESSES:
        assert SERVICES[service]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert SERVICES["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
