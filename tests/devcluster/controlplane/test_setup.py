"""What is made once (programs, environment, certificates, ports) is made whole or not at all, and found again."""

import json
import os
import ssl
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from devcluster import bootstrap
from devcluster.client.kube import Api
from devcluster.controlplane import pki, programs
from devcluster.controlplane.external import ExternalCluster
from devcluster.processes import lock, ports
from devcluster.processes.console import UserError
from devcluster.processes.supervisor import Supervisor


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = tmp_path / "gpu-portal" / "programs"
    home.mkdir(parents=True)
    return home


def test_a_half_built_cache_is_not_used_and_a_whole_one_is(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache / f"{programs.CLUSTER.digest()}-go1.26.0.building" / "bin").mkdir(parents=True)
    (cache / f"{programs.CLUSTER.digest()}-go1.26.0" / "bin").mkdir(parents=True)
    monkeypatch.setenv("PATH", "")  # whoever builds looks for Go first
    with Supervisor(tmp_path / "log") as supervisor:
        monkeypatch.setattr(programs, "REQUIREMENTS", tmp_path)
        with pytest.raises(UserError, match="Go is required once"):
            programs.find_or_build(supervisor)

        (cache / f"{programs.CLUSTER.digest()}-go1.26.0" / "ready.json").write_text("{}")
        assert programs.find_or_build(supervisor).directory == cache / f"{programs.CLUSTER.digest()}-go1.26.0"


def test_the_recipe_changes_with_what_is_pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = programs.CLUSTER.digest()
    for module in programs.CLUSTER.builds:
        (tmp_path / module).mkdir()
        for name in ("go.mod", "go.sum"):
            (tmp_path / module / name).write_bytes((programs.TOOLS / module / name).read_bytes())
    monkeypatch.setattr(programs, "TOOLS", tmp_path)
    assert programs.CLUSTER.digest() == before
    (tmp_path / "caddy" / "go.sum").write_text("changed")
    assert programs.CLUSTER.digest() != before


def test_the_recipe_changes_with_its_build_tags() -> None:
    assert programs.MONITORING.digest() != replace(programs.MONITORING, tags=()).digest()


def test_certificates_are_made_once_and_private(tmp_path: Path) -> None:
    made = pki.make(tmp_path / "pki")
    before = made.cert("ca").read_bytes()
    assert pki.make(tmp_path / "pki").cert("ca").read_bytes() == before
    assert {stat.S_IMODE(key.stat().st_mode) for key in (tmp_path / "pki").glob("*.key")} == {0o600}
    assert [path.name for path in tmp_path.iterdir()] == ["pki"]  # nothing half-made beside it

    context = ssl.create_default_context(cafile=str(made.cert("ca")))
    context.load_cert_chain(made.cert("admin"), made.key("admin"))
    written = pki.kubeconfig(tmp_path / "config", server="https://127.0.0.1:1", pki=made, token="a token")
    config = json.loads(written.read_text())
    assert config["current-context"] == "devcluster"
    assert config["users"][0]["user"] == {"token": "a token"}
    assert stat.S_IMODE((tmp_path / "config").stat().st_mode) == 0o600


def test_ports_stay_the_same_over_restarts_while_they_are_free(tmp_path: Path) -> None:
    first = ports.assign_ports(tmp_path)
    assert ports.assign_ports(tmp_path) == first
    assert len(set(first.values())) == len(ports.PORT_NAMES)


def test_a_state_directory_has_one_user_and_says_who(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "PATIENCE_S", 0.1)
    held = lock.lock_state(tmp_path)
    with pytest.raises(UserError, match=rf"Another run \(process {os.getpid()}\) uses"):
        lock.lock_state(tmp_path)
    held.close()
    lock.lock_state(tmp_path).close()


def test_the_installer_is_pinned_with_its_hashes() -> None:
    pinned = bootstrap._pinned("uv")
    assert pinned.startswith("uv==")
    assert pinned.count("--hash=sha256:") >= 1
    assert "uvicorn" not in pinned


def test_the_three_identities_are_who_they_say(services: dict[str, Any]) -> None:
    for name in ("worker", "watcher", "doors"):
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        api = Api(services["kubeconfigs"][name])
        answer = api.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
        assert answer["status"]["userInfo"]["username"] == f"system:serviceaccount:gpu-portal:{name}"
        assert stat.S_IMODE(Path(services["kubeconfigs"][name]).stat().st_mode) == 0o600


def test_a_cluster_of_ones_own_is_checked_before_use(services: dict[str, Any], tmp_path: Path) -> None:
    ExternalCluster(Path(services["kubeconfigs"]["admin"])).check()
    with pytest.raises(UserError, match="refuses"):
        ExternalCluster(Path(services["kubeconfigs"]["doors"])).check()
    with pytest.raises(UserError, match="not a usable kubeconfig"):
        ExternalCluster(tmp_path / "missing")


def test_what_belongs_to_whoever_started_us_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, str] = {}
    for name in bootstrap.NOT_OURS:
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("LOG_LEVEL", "INFO")
    monkeypatch.setattr(bootstrap, "ensure", lambda: None)
    monkeypatch.setattr(bootstrap, "interrupt_on_signals", lambda: None)
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "execve", lambda _path, _argv, environment: kept.update(environment))
    bootstrap.enter(["test"])
    assert kept["LOG_LEVEL"] == "INFO"
    assert not kept.keys() & {"PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE"}
