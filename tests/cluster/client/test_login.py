"""CA, token and certificate are replaced while clients run, on a real API server that reads its own again too."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.client import login
from cluster.client.errors import ClusterUnavailable
from cluster.client.kube import Kube
from cluster.models import Cluster
from tests.support.cluster.second_api_server import SecondApiServer, second_api_server
from tests.support.processes.watchers import Watchers, eventually, is_current
from tests.support.waiting import wait_until

PATH = "api/v1/namespaces"
WITHIN_S = 60.0


@pytest.fixture(scope="module")
def server(services: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecondApiServer]:
    with second_api_server(services, tmp_path_factory.mktemp("second")) as found:
        yield found


def can_list(kube: Kube) -> bool:
    try:
        return bool(kube.list_page(PATH, limit=1)["items"])
    except ClusterUnavailable:
        return False


def connects(kube: Kube) -> bool:
    """On a new connection: kept ones need no certificate any more."""
    kube.login.current().pool.clear()
    return can_list(kube)


class Watching(threading.Thread):
    """One watch that stays open. `ended`: what ended it."""

    def __init__(self, kube: Kube) -> None:
        super().__init__(daemon=True)
        self._kube = kube
        self.version = kube.list_page(PATH, limit=1)["metadata"]["resourceVersion"]
        self.lines = 0
        self.ended: list[str] = []

    def run(self) -> None:
        try:
            for line in self._kube.watch_lines(PATH, resource_version=self.version, timeout_s=300, ends_after_s=300):
                self.lines += bool(line.strip())
            self.ended.append("by the server")
        except ClusterUnavailable as error:
            self.ended.append(str(error))


@pytest.mark.parametrize("given", ["in the kubeconfig", "as a file"])
def test_a_new_ca_under_open_watches(server: SecondApiServer, given: str, admin: Any, unique: str) -> None:
    kube = Kube(str(server.kubeconfig if given == "in the kubeconfig" else server.with_files))
    watching = Watching(kube)
    watching.start()
    before = server.serial
    server.swap_certificate()
    wait_until(lambda: server.serial == server.serial_wanted != before, within_s=WITHIN_S, what="the new certificate")
    assert not connects(kube)
    server.tell_clients()
    wait_until(lambda: connects(kube), within_s=WITHIN_S, what="a new connection is trusted")

    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"swapped-{unique}"}})
    try:
        wait_until(lambda: watching.lines > 0, within_s=30, what="the old watch hears of it")
    finally:
        admin.delete("v1/namespaces", f"swapped-{unique}")
    assert watching.ended == []


def test_a_new_token(server: SecondApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "LOOK_EVERY_S", 0.0)
    server.write_token("of-last-week")
    kube = Kube(str(server.with_files))
    assert not can_list(kube)
    server.write_token(server.token)
    assert can_list(kube)


@pytest.mark.parametrize("content", ["", "{", "clusters: none", "users: [{name: x}]"])
def test_a_file_that_is_half_written(
    server: SecondApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.setattr(login, "LOOK_EVERY_S", 0.0)
    path = tmp_path / "kubeconfig"
    path.write_text(server.kubeconfig.read_text())
    kube = Kube(str(path))
    path.write_text(content)
    assert can_list(kube)
    path.write_text(server.kubeconfig.read_text().replace(server.token, "another"))
    assert not can_list(kube)


def test_a_pods_service_account(server: SecondApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "LOOK_EVERY_S", 0.0)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
    for name, file in (("SERVICE_TOKEN_FILENAME", "token"), ("SERVICE_CERT_FILENAME", "ca.crt")):
        (tmp_path / file).write_text((server.home / file).read_text())
        monkeypatch.setattr(login.incluster_config, name, str(tmp_path / file))
    kube = Kube()
    assert can_list(kube)
    (tmp_path / "token").write_text("another")
    assert not can_list(kube)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clean_cluster")
def test_the_watcher_is_current_again(server: SecondApiServer, cluster: Cluster, tmp_path: Path) -> None:
    """The process goes on. It is told of the CA when it is cut off, which is the worse order."""
    watchers = Watchers(str(server.kubeconfig), tmp_path)
    try:
        process = watchers.start("--silence", "5")
        eventually(lambda: is_current(cluster), watchers)
        server.swap_certificate()
        eventually(lambda: not is_current(cluster), watchers)
        server.tell_clients()
        eventually(lambda: is_current(cluster), watchers, within_s=WITHIN_S)
        assert watchers.said(0, "login_changed")
        assert watchers.processes == [process]
    finally:
        watchers.end()
