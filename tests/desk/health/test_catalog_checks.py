"""The section "Catalog" of the health page: problems, remedies, and no good verdict without knowledge."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.core.actor import system_actor
from accounts.models import User
from catalog.classes import actions as class_actions
from catalog.classes.proposals import actions
from catalog.discovery import queries
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorEpoch, MirrorNode
from desk.health import catalog_checks as shown
from tests.support.rows import make, mirrored


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def section(client: Client, query: str = "part=catalog") -> str:
    response = client.get(f"/health?{query}")
    assert response.status_code == 200
    return response.content.decode()


@pytest.fixture
def gone(cluster: Cluster) -> GpuClass:
    """A class for a GPU product that no node has, beside the simulated hardware."""
    mirrored.hardware_seen(cluster)
    return make.gpu_class(cluster, slug="gone", name="Gone", node_labels={"nvidia.com/gpu.product": "GONE"})


def test_a_finding_has_word_sentence_remedy_and_link(gone: GpuClass, olga: User) -> None:
    page = signed_in(olga).get("/health").content.decode()
    entry = next(one for one in page.split("<li ") if 'data-check="class_without_nodes"' in one)
    assert "Error" in entry
    assert "No node provides class Gone: none of" in entry
    assert "nodes has nvidia.com/gpu.product=GONE." in entry
    assert "Correct the labels of the class, or retire it." in entry
    link = reverse("class-edit", args=[gone.slug])
    assert f'href="{link}"' in entry
    assert make.administrator(Client(), olga).get(link).status_code == 200


def test_devices_without_a_class_lead_to_their_proposal_or_draft(cluster: Cluster, olga: User) -> None:
    """The node is linked, and so is the place where the class is accepted: nobody has to search for it."""
    mirrored.hardware_seen(cluster)
    found = queries.discover_cluster(cluster)
    assert found is not None
    client = make.administrator(Client(), olga)
    line = next(one for one in shown.catalog_checks(cluster, is_staff=True).lines or () if "(H100" in one.sentence)
    assert line.href == reverse("node", args=["h100"])
    assert line.remedy_href == reverse("admin:catalog_gpuclass_proposed")
    assert f'href="{line.remedy_href}">Accept the proposal' in section(client)
    assert "h100-80gb-hbm3" in client.get(line.remedy_href).content.decode()

    values = next(actions.class_values(one) for one in found.proposals if one.slug == "h100-80gb-hbm3")
    draft = class_actions.create_class(slug="h100-draft", by=system_actor("test"), **values)
    line = next(one for one in shown.catalog_checks(cluster, is_staff=True).lines or () if "(H100" in one.sentence)
    assert line.remedy_href == reverse("class-edit", args=[draft.slug])
    lines = shown.catalog_checks(cluster, is_staff=False).lines or ()
    assert {one.remedy_href for one in lines} == {""}, "no links to pages that this user may not open"


def test_the_verdict_on_everything_counts_faults_of_the_catalog(cluster: Cluster, olga: User) -> None:
    """The section carries the verdict, so that the page does not contradict itself; hints do not change the verdict."""
    client = signed_in(olga)
    mirrored.seen(cluster)
    make.gpu_class(cluster, slug="gone", name="Gone", node_labels={"nvidia.com/gpu.product": "GONE"})
    for page in (client.get("/health").content.decode(), section(client)):
        assert "note-wait" in page
        assert "Degraded: 1 catalog problem." in page
    GpuClass.objects.update(life_cycle=GpuClass.LifeCycle.RETIRED)
    mended = section(client)
    assert 'id="verdict" hx-swap-oob="true"' in mended
    assert "note-good" in mended
    assert "Degraded" not in mended


def test_hints_make_nothing_unwell(cluster: Cluster, olga: User) -> None:
    mirrored.hardware_seen(cluster)
    found = queries.discover_cluster(cluster)
    assert found is not None
    actions.accept_proposals(list(found.proposals), by=system_actor("test"), cluster=cluster)
    page = section(signed_in(olga))
    assert "2 hints" in page
    assert "note-good" in page


def test_the_part_alone_is_for_operators_too(gone: GpuClass, alice: User) -> None:
    assert signed_in(alice).get("/health?part=catalog").status_code == 404


def test_while_nothing_changes_only_the_freshness_is_sent(gone: GpuClass, olga: User) -> None:
    client = signed_in(olga)
    first = section(client)
    query = poll_of(first)
    response = client.get(f"/health?{query}")
    assert response["HX-Reswap"] == "none"
    assert 'hx-swap-oob="true"' in response.content.decode()
    assert "Gone" not in response.content.decode()
    GpuClass.objects.filter(pk=gone.pk).update(life_cycle=GpuClass.LifeCycle.RETIRED)
    changed = client.get(f"/health?{query}")
    assert "HX-Reswap" not in changed
    assert 'id="catalog-checks"' in changed.content.decode()


def test_without_a_mirror_the_section_says_unknown(gone: GpuClass, olga: User) -> None:
    MirrorEpoch.objects.all().delete()
    page = section(signed_in(olga))
    assert "Unknown" in page
    assert "catalog not checked." in page
    assert "The catalog cannot be checked against the nodes: The cluster has not been listed yet." in page
    assert "No problems" not in page


def test_old_data_are_called_old(cluster: Cluster, olga: User) -> None:
    mirrored.seen(cluster)
    assert "No problems: every class has nodes" in section(signed_in(olga))
    MirrorEpoch.objects.update(beat_at=timezone.now() - timedelta(minutes=5))
    page = section(signed_in(olga))
    assert "Outdated, last updated" in page
    assert "The watcher is not running. These findings may be outdated." in page


def test_since_when_is_shown_where_it_is_known(cluster: Cluster, olga: User) -> None:
    mirrored.hardware_seen(cluster)
    node = MirrorNode.objects.get(name="a100-1")
    node.record["labels"]["nvidia.com/mig.config.state"] = "pending"
    node.record["writers"] = {"nvidia.com/mig.config.state": {"manager": "mig", "at": "2026-11-21T08:15:00Z"}}
    node.save()
    entry = next(one for one in section(signed_in(olga)).split("<li ") if 'data-check="mig_state"' in one)
    assert "since at least" in entry
    assert 'datetime="2026-11-21T08:15:00+00:00"' in entry
    assert "Node a100-1 is being set to layout “all-disabled”: the MIG manager reports pending." in entry


def test_a_long_list_is_cut_and_hides_no_other_check(
    gone: GpuClass, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown, "SHOWN", 2)
    page = section(signed_in(olga))
    codes = re.findall(r'data-check="(\w+)"', page)
    assert codes.count("resource_not_offered") == 2
    assert {"class_without_nodes", "slices_not_offered", "too_many_profiles"} <= set(codes)
    assert re.search(r"\d+ more findings of the same kinds", page)


def test_the_number_of_queries_does_not_grow_with_the_nodes(cluster: Cluster, olga: User) -> None:
    """Each open page requests the section every 3 s: it takes few queries while nothing has changed."""
    client = signed_in(olga)
    changed, same = [], []
    for nodes in (10, 100):
        mirrored.seen(cluster, Node=[a_node(f"n{number}") for number in range(nodes)])
        section(client)
        with CaptureQueriesContext(connection) as taken:
            page = section(client)
        assert f" and {nodes - 3} more." in page
        changed.append(len(taken))
        with CaptureQueriesContext(connection) as taken:
            assert "more." not in section(client, poll_of(page))
        same.append(len(taken))
    assert same[0] == same[1] <= 12
    assert changed[0] == changed[1] <= 60


def poll_of(page: str) -> str:
    """Returns the query string of the section's next request."""
    found = re.search(r'hx-get="/health\?(part=catalog&amp;seen=[0-9a-f]+)"', page)
    assert found
    return found[1].replace("&amp;", "&")


def a_node(name: str) -> dict[str, Any]:
    one = mirrored.hardware.read("mixed").nodes[0]
    return mirrored.ready({**one, "metadata": {**one["metadata"], "name": name}})
