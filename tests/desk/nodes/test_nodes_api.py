"""Nodes in the API: what the page Nodes shows, for operators."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from cluster.models import Cluster, MirrorKind, MirrorNode
from tests.support.rows import mirrored

pytestmark = pytest.mark.django_db
PATH = "/api/v1/operators/nodes"


def test_nodes_with_their_devices_page_by_page(client: Client, cluster: Cluster, olga: User) -> None:
    mirrored.hardware_seen(cluster)
    client.force_login(olga)
    whole = client.get(PATH).json()
    one = next(line for line in whole["items"] if line["name"] == "a100-1")
    assert one["devices"] == [
        {"resource": "nvidia.com/gpu", "capacity": 4, "allocatable": 4, "used": 0, "unhealthy": 0, "faulty": 0}
    ]
    assert (one["is_ready"], one["is_schedulable"], one["cordon"], one["faults"]) == (True, True, "", [])
    assert (whole["is_current"], whole["problem"], "not read" in whole["faults"]) == (True, "", True)
    names, address = [], f"{PATH}?limit=2"
    costs = set()
    while address:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            page = client.get(address).json()
        costs.add(len(asked))
        names += [line["name"] for line in page["items"]]
        address = page["next"]
    assert names == [line["name"] for line in whole["items"]]
    assert max(costs) < 20


def test_filters_and_old_data(client: Client, cluster: Cluster, olga: User) -> None:
    mirrored.hardware_seen(cluster)
    MirrorNode.objects.filter(name="a100-1").update(ready=False)
    client.force_login(olga)
    assert [line["name"] for line in client.get(f"{PATH}?state=not-ready").json()["items"]] == ["a100-1"]
    assert [line["name"] for line in client.get(f"{PATH}?q=a100-1").json()["items"]] == ["a100-1"]
    assert client.get(f"{PATH}?state=tired").json()["field"] == "state"
    MirrorKind.objects.filter(kind="Pod").update(problem="It refused.")
    assert client.get(PATH).json()["is_current"] is False


def test_for_others_there_is_none(client: Client, cluster: Cluster, bob: User, dana: User) -> None:
    for who in (bob, dana):
        client.force_login(who)
        assert client.get(PATH).status_code == 404
