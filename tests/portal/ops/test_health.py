"""Probes and metrics: on the public port only what says nothing about the inside; the rest on a port of its own."""

from __future__ import annotations

import math
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.db.models.functions import Now
from django.test import Client

from cluster.models import AppliedObject, Cluster, MirrorEpoch
from devcluster.processes.ports import free_port
from portal.core import hints
from portal.ops import health, ops_server
from tests.support.http.metrics import figures
from tests.support.rows import make
from tests.support.rows.due_rows import due_row

# ---- health probes -------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def migrations_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_migrated", False)


def test_alive_needs_nobody(client: Client) -> None:
    """No database is allowed in this test."""
    answer = client.get("/livez")

    assert (answer.status_code, answer.text) == (200, "alive\n")


def test_ready_when_everything_answers(client: Client, db: None) -> None:
    answer = client.get("/readyz")

    assert (answer.status_code, answer.text) == (200, "ready\n")
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("redis://127.0.0.1:1/0", "Redis does not answer (ConnectionError)."),
        (
            "sentinel://127.0.0.1:1,127.0.0.1:2/0?service=portal",
            "Redis has no primary: no sentinel that answers names one.",
        ),
    ],
)
def test_ready_without_redis(
    client: Client, db: None, settings: LazySettings, monkeypatch: pytest.MonkeyPatch, url: str, sentence: str
) -> None:
    """Pages go on: a web process that counted as not ready would take them away as soon as Redis is."""
    settings.REDIS_URL = url
    monkeypatch.setattr(hints, "redis_connection", hints.redis_connection.__wrapped__)

    answer = client.get("/readyz")

    assert (answer.status_code, answer.text) == (200, f"ready\n{sentence}\n")


def test_not_ready_before_the_migrations(client: Client, db: None) -> None:
    from django.db.migrations.recorder import MigrationRecorder

    newest = MigrationRecorder.Migration.objects.filter(app="accounts").order_by("name").last()
    assert newest is not None
    newest.delete()

    answer = client.get("/readyz")

    assert (answer.status_code, answer.text) == (503, "1 migrations are not applied.\n")


def test_the_public_port_has_no_metrics(client: Client, db: None) -> None:
    assert client.get("/metrics").status_code == 404
    assert client.post("/readyz").status_code == 405


# ---- metrics from the database -------------------------------------------------------------------------------------


def test_overdue_is_seen_per_table(cluster: Cluster) -> None:
    due_row(cluster, "team-a", since_s=90)

    found = figures()

    assert 90 <= found["portal_overdue_seconds", "tenants.namespace"] < 100
    assert found["portal_overdue_seconds", "accounts.delivery"] == 0
    assert found["portal_database_up",] == 1


def test_a_mirror_that_was_never_filled_is_infinitely_old(cluster: Cluster) -> None:
    assert figures()["portal_mirror_age_seconds", "main"] == math.inf

    MirrorEpoch.objects.create(cluster_id=cluster.pk, epoch=1, heard_at=Now() - timedelta(seconds=40))

    assert 40 <= figures()["portal_mirror_age_seconds", "main"] < 45


def test_each_object_is_counted_in_one_state(cluster: Cluster) -> None:
    results = [("applied", {}), ("applied", {"fields": ["spec"]}), ("refused", {}), ("refused", {"fields": ["spec"]})]
    for number, (result, difference) in enumerate(results):
        AppliedObject.objects.create(
            cluster=cluster, owner="x", kind="Secret", name=f"n{number}", result=result, difference=difference
        )

    found = figures()

    states = {key[1]: value for key, value in found.items() if key[0] == "portal_objects"}
    none = dict.fromkeys(("foreign", "missing", "repaired", "terminating", "orphan"), 0)
    assert states == {"applied": 1, "drifted": 1, "refused": 2, **none}


def test_requests_are_counted_by_route_and_never_by_path(client: Client, alice: object) -> None:
    before = figures()
    client.delete("/api/v1/tokens/abcd1234")
    client.get("/no/such/page")
    client.get("/another/missing/page")
    after = figures()

    def grown(*key: str) -> float:
        return after.get(key, 0) - before.get(key, 0)

    assert grown("portal_http_requests_total", "DELETE", "api/v1/tokens/<slug:prefix>", "401") == 1
    assert grown("portal_http_requests_total", "GET", "none", "404") == 2
    assert grown("portal_http_request_duration_seconds_count", "GET", "none") == 2
    assert not any("abcd1234" in part for key in after for part in key)


# ---- the internal port ---------------------------------------------------------------------------------------------


def ask(port: int, path: str) -> tuple[int, bytes]:
    """Waits for the thread to listen."""
    deadline = time.monotonic() + 10
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()
        except urllib.error.URLError:
            if time.monotonic() > deadline:
                raise


@pytest.mark.django_db(transaction=True)
def test_the_internal_port_answers_probes_and_prometheus(settings: LazySettings) -> None:
    settings.INTERNAL_PORT = free_port()
    make.user("Alice")

    ops_server.start_ops_server()

    assert ask(settings.INTERNAL_PORT, "/livez") == (200, b"alive\n")
    assert ask(settings.INTERNAL_PORT, "/readyz?verbose") == (200, b"ready\n")
    assert ask(settings.INTERNAL_PORT, "/tokens")[0] == 404
    status, text = ask(settings.INTERNAL_PORT, "/metrics")
    assert status == 200
    assert figures(text)["portal_database_up",] == 1


def test_no_port_no_thread(settings: LazySettings) -> None:
    settings.INTERNAL_PORT = 0

    assert ops_server.start_ops_server() is None


def test_a_port_in_use_is_tried_again(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several workers of one gunicorn have the same port: when the first dies, another takes over."""
    monkeypatch.setattr(ops_server, "TRY_AGAIN_S", 0.05)
    settings.INTERNAL_PORT = free_port()
    with socket.socket() as first:
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        first.bind(("127.0.0.1", settings.INTERNAL_PORT))
        first.listen()
        thread = ops_server.start_ops_server()
        assert thread is not None
        thread.join(0.2)
        assert thread.is_alive()

    assert ask(settings.INTERNAL_PORT, "/livez") == (200, b"alive\n")


def test_a_probe_that_leaves_before_the_answer_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    asked, left = threading.Event(), threading.Event()

    def answer_late(path: str) -> tuple[int, str, bytes]:
        asked.set()
        assert left.wait(10)
        return 200, "text/plain", b"x"

    monkeypatch.setattr(ops_server, "answer", answer_late)
    with ops_server.OpsServer("127.0.0.1", 0) as server:
        server.daemon_threads = False  # so that the end of the block waits for the answer
        threading.Thread(target=server.serve_forever).start()
        probe = socket.create_connection(server.server_address)
        probe.sendall(b"GET /livez HTTP/1.0\r\n\r\n")
        assert asked.wait(10)
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close with a reset
        probe.close()
        left.set()
        server.shutdown()

    assert capfd.readouterr() == ("", "")
