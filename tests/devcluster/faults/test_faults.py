from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from devcluster.client.kube import APPLY, Api, ApiError
from devcluster.client.types import Json
from devcluster.faults.api_proxy import ApiProxy
from devcluster.faults.rules import WRITES, Call, call_of
from devcluster.faults.tcp_proxy import TcpProxy
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[3]
LOST = (OSError, http.client.HTTPException)
# Who gave up after 0.3 s has longer for the answer that has to come: several processes keep the machine busy.
PATIENT_S = 10.0


@pytest.fixture
def proxy(services: Json, tmp_path: Path) -> Iterator[ApiProxy]:
    with ApiProxy(services["kubeconfigs"]["admin"], tmp_path) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: ApiProxy) -> Api:
    """One that goes through the proxy; `admin` does not."""
    return Api(proxy.kubeconfig, timeout_s=3)


def config_map(namespace: str, name: str = "a", **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def names(admin: Api, namespace: str) -> set[str]:
    found = {obj["metadata"]["name"] for obj in admin.list("v1/configmaps", namespace=namespace)}
    return found - {"kube-root-ca.crt"}


# which call is it?


@pytest.mark.parametrize(
    ("method", "target", "verb", "resource", "namespace", "name"),
    [
        ("GET", "/api/v1/namespaces/team-a/pods", "list", "pods", "team-a", ""),
        ("GET", "/api/v1/pods?watch=1&resourceVersion=5", "watch", "pods", "", ""),
        ("GET", "/api/v1/namespaces/team-a/pods/p/log?follow=true", "get", "pods/log", "team-a", "p"),
        ("GET", "/api/v1/namespaces/team-a", "get", "namespaces", "", "team-a"),
        ("POST", "/apis/batch/v1/namespaces/team-a/jobs", "create", "jobs", "team-a", ""),
        ("DELETE", "/apis/batch/v1/namespaces/team-a/jobs/j", "delete", "jobs", "team-a", "j"),
        ("DELETE", "/apis/batch/v1/namespaces/team-a/jobs", "deletecollection", "jobs", "team-a", ""),
        ("PATCH", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q/status", "patch", "clusterqueues/status", "", "q"),
        ("GET", "/apis/batch/v1", "get", "", "", ""),
        ("GET", "/readyz", "get", "", "", ""),
    ],
)
def test_requests_are_told_apart_in_the_words_of_rbac(method, target, verb, resource, namespace, name):
    call = call_of(method, target)
    assert (call.verb, call.resource, call.namespace, call.name) == (verb, resource, namespace, name)


def test_an_apply_is_a_patch_of_its_own_kind():
    assert call_of("PATCH", "/api/v1/namespaces/a", APPLY).verb == "apply"
    assert call_of("PATCH", "/api/v1/namespaces/a?dryRun=All", "application/merge-patch+json") == Call(
        verb="patch", resource="namespaces", name="a", dry_run=True, path="/api/v1/namespaces/a"
    )


# faults of calls


def test_without_rules_the_proxy_is_not_noticed(admin, proxy, client, namespace):
    client.create(config_map(namespace, colour="red"))
    client.apply(config_map(namespace, colour="blue"))
    assert client.get("v1/configmaps", "a", namespace=namespace)["data"] == {"colour": "blue"}
    client.delete("v1/configmaps", "a", namespace=namespace)
    assert names(admin, namespace) == set()
    verbs = [done.call.verb for done in proxy.calls(resource="configmaps")]
    assert verbs == ["create", "apply", "get", "delete"]


def test_the_answer_of_the_second_create_is_lost_and_the_object_is_there(admin, proxy, client, namespace):
    rule = proxy.when("create", "configmaps", nth=2).drop_answer()
    client.create(config_map(namespace, "a"))
    with pytest.raises(LOST):
        client.create(config_map(namespace, "b"))
    assert names(admin, namespace) == {"a", "b"}
    client.create(config_map(namespace, "c"))
    assert (rule.seen, rule.struck) == (3, 1)


@pytest.mark.parametrize("fault", ["drop_before", "refuse"])
def test_a_request_that_is_lost_on_the_way_does_nothing(admin, proxy, client, namespace, fault):
    getattr(proxy.when("create", "configmaps"), fault)()
    with pytest.raises(LOST):
        client.create(config_map(namespace))
    assert names(admin, namespace) == set()
    assert proxy.calls("create", "configmaps") == []
    client.create(config_map(namespace))


def test_a_status_is_answered_without_asking_the_api_server(admin, proxy, client, namespace):
    proxy.when(WRITES, namespace=namespace, times=None).status(503)
    for _ in range(3):
        with pytest.raises(ApiError) as refused:
            client.create(config_map(namespace))
        assert (refused.value.status, refused.value.reason) == (503, "ServiceUnavailable")
    proxy.forget()
    client.create(config_map(namespace))
    assert names(admin, namespace) == {"a"}


def test_a_delayed_call_runs_into_the_clients_time_out(proxy, namespace):
    proxy.when("list", "configmaps", namespace=namespace).delay(2.0)
    hasty = Api(proxy.kubeconfig, timeout_s=0.3)
    with pytest.raises(TimeoutError):
        hasty.list("v1/configmaps", namespace=namespace)
    hasty.timeout_s = PATIENT_S
    assert hasty.list("v1/configmaps", namespace=namespace)


def test_a_server_that_is_away_hangs_or_refuses_until_it_is_back(proxy, namespace):
    hasty = Api(proxy.kubeconfig, timeout_s=0.3)
    proxy.pause()
    with pytest.raises(TimeoutError):
        hasty.list("v1/configmaps", namespace=namespace)
    hasty.timeout_s = PATIENT_S
    proxy.resume()
    proxy.refuse()
    with pytest.raises(LOST):
        hasty.list("v1/configmaps", namespace=namespace)
    proxy.resume()
    assert hasty.list("v1/configmaps", namespace=namespace)


# crash points

WRITER = """
import sys
from devcluster.client.kube import Api
api = Api(sys.argv[1])
for name in "abc":
    metadata = {"name": name, "namespace": sys.argv[2]}
    api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
"""


@pytest.mark.parametrize(("where", "left"), [("call_before", {"a"}), ("call_after", {"a", "b"})])
def test_a_process_dies_just_before_or_just_after_its_second_write(admin, proxy, namespace, where, left):
    started: list[subprocess.Popen[bytes]] = []
    rule = getattr(proxy.when(WRITES, nth=2), where)(
        lambda: (os.kill(started[0].pid, signal.SIGKILL), started[0].wait())
    )
    started.append(subprocess.Popen([sys.executable, "-c", WRITER, proxy.kubeconfig, namespace], cwd=ROOT))
    rule.wait()
    assert started[0].wait(10) == -signal.SIGKILL
    assert names(admin, namespace) == left


# faults of watches


class Watcher:
    """Watches config maps through the proxy and remembers (type, name)."""

    def __init__(self, client: Api, namespace: str) -> None:
        version = client.list_page("v1/configmaps", namespace=namespace)["metadata"]["resourceVersion"]
        self.events: list[tuple[str, str]] = []
        self.error: ApiError | None = None
        self._watch = client.watch("v1/configmaps", namespace=namespace, resource_version=version)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for kind, obj in self._watch:
                if kind != "BOOKMARK":
                    self.events.append((kind, obj["metadata"]["name"]))
        except ApiError as error:
            self.error = error

    def stop(self) -> None:
        self._watch.stop()
        self._thread.join(5)


@pytest.fixture
def watcher(admin: Api, client: Api, namespace: str) -> Iterator[Watcher]:
    # The controller manager adds this one to each new namespace; later, it would be one of the events of the test.
    wait_until(lambda: admin.find("v1/configmaps", "kube-root-ca.crt", namespace=namespace))
    watcher = Watcher(client, namespace)
    yield watcher
    watcher.stop()


def make_abc(admin: Api, namespace: str) -> None:
    for name in "abc":
        admin.create(config_map(namespace, name))


@pytest.mark.parametrize(
    ("fault", "seen"),
    [("duplicate", "abbc"), ("reorder", "acb"), ("drop_event", "ac")],
)
def test_the_second_event_is_doubled_late_or_lost(admin, proxy, namespace, watcher, fault, seen):
    getattr(proxy.when("watch", "configmaps", nth=2), fault)()
    make_abc(admin, namespace)
    wait_until(lambda: len(watcher.events) >= len(seen))
    assert "".join(name for _, name in watcher.events) == seen


def test_only_events_that_the_predicate_picks_are_counted(admin, proxy, namespace, watcher):
    deletions = proxy.when("watch", predicate=lambda call, event: event["type"] == "DELETED").drop_event()
    make_abc(admin, namespace)
    admin.delete("v1/configmaps", "b", namespace=namespace)
    admin.delete("v1/configmaps", "c", namespace=namespace)
    wait_until(lambda: ("DELETED", "c") in watcher.events)
    assert ("DELETED", "b") not in watcher.events
    assert deletions.struck == 1


def test_a_watch_ends_with_410_in_the_place_of_an_event(admin, proxy, namespace, watcher):
    proxy.when("watch", "configmaps", nth=2).gone()
    make_abc(admin, namespace)
    wait_until(lambda: watcher.error)
    assert (watcher.error.status, watcher.error.reason) == (410, "Expired")
    assert watcher.events == [("ADDED", "a")]


def test_a_silent_watch_stays_open_and_says_nothing(admin, proxy, namespace, watcher):
    rule = proxy.when("watch", "configmaps", nth=2).silence()
    make_abc(admin, namespace)
    rule.wait()
    admin.create(config_map(namespace, "d"))
    watched_for = time.monotonic() + 0.5
    wait_until(lambda: time.monotonic() > watched_for)
    assert watcher.events == [("ADDED", "a")]
    assert watcher.error is None


# PostgreSQL and Redis


def test_postgresql_pauses_goes_away_and_comes_back(services):
    with TcpProxy.of(services["database_url"]) as proxy:
        with psycopg.connect(proxy.url, autocommit=True) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
            proxy.cut()
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        proxy.refuse()
        with pytest.raises(psycopg.OperationalError, match="refused"):
            psycopg.connect(proxy.url)
        proxy.resume()
        with psycopg.connect(proxy.url) as connection:
            assert connection.execute("SELECT 2").fetchone() == (2,)


def test_redis_hangs_while_it_is_paused_and_answers_afterwards(services):
    with TcpProxy.of(services["redis_url"]) as proxy:
        client = redis.Redis.from_url(proxy.url, socket_timeout=0.3, retry=None)
        assert client.ping()
        proxy.pause()
        with pytest.raises(redis.TimeoutError):
            client.ping()
        proxy.resume()
        assert client.ping()
        client.close()
