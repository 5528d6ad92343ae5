"""The page Observe only, the banner on every page, and what waits: said as waiting, and not as failing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass, Pool
from cluster.models import Cluster, MirrorKind
from cluster.observe_only.actions import set_observe_only
from cluster.observe_only.queries import is_observe_only
from desk.health import queries
from desk.health.catalog_checks import catalog_checks
from tenants.models import Namespace, Plan, Tenant
from tenants.requests.actions import file_request
from tenants.requests.types import RequestedLine
from tests.support.rows import mirrored

PATH = "/cluster/observe-only"
TEXT = "Waiting: observe only. The portal writes nothing to the cluster. Not sent: PATCH api/v1/namespaces/team-a"


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def page(user: User, path: str = PATH) -> str:
    response = signed_in(user).get(path)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


@pytest.fixture
def observed(cluster: Cluster, olga: User) -> Cluster:
    return set_observe_only(cluster, wanted=True, by=Actor(olga, "page"))


@pytest.fixture
def waiting(observed: Cluster, namespace_a: Namespace) -> Namespace:
    Namespace.objects.filter(pk=namespace_a.pk).update(error_code="observe_only", error_text=TEXT)
    return namespace_a


def test_an_operator_turns_it_on_and_off(cluster: Cluster, olga: User) -> None:
    client = signed_in(olga)
    assert "The portal writes to the cluster" in page(olga)
    assert client.post(f"{PATH}/set", {"to": "on"}).status_code == 302
    assert is_observe_only()
    assert "The portal only observes the cluster" in page(olga)
    assert client.post(f"{PATH}/set", {"to": "off"}).status_code == 302
    assert not is_observe_only()
    assert [event.verb for event in Event.objects.order_by("pk")] == [
        "cluster.observe_only_begun",
        "cluster.observe_only_ended",
    ]


def test_every_page_says_it_and_to_operators_by_whom(
    observed: Cluster, team_a: Tenant, alice: User, olga: User
) -> None:
    told, told_olga = page(alice, "/catalog"), page(olga, "/catalog")
    assert "<b>Observe only</b> since" in told
    assert "is saved and waits until an operator ends this" in told
    assert "by Olga" not in told
    assert ", by Olga: the portal reads the cluster and writes nothing to it" in told_olga
    assert f'href="{PATH}"' in told_olga
    set_observe_only(observed, wanted=False, by=Actor(olga, "page"))
    assert "Observe only</b>" not in page(alice, "/catalog")


def test_what_waits_is_listed_here_and_is_no_failure(waiting: Namespace, olga: User) -> None:
    assert TEXT in page(olga)
    assert "1 row whose next write" in page(olga)
    found = queries.health(waiting.cluster, catalog_checks(waiting.cluster, is_staff=False))
    assert found.problems == []
    assert "failing" not in found.verdict
    Namespace.objects.update(error_code="cluster_unavailable")
    assert "Nothing waits." in page(olga)
    assert [
        one.error_code
        for one in queries.health(waiting.cluster, catalog_checks(waiting.cluster, is_staff=False)).problems
    ] == ["cluster_unavailable"]


def test_pages_of_a_team_say_that_it_waits(waiting: Namespace, team_a: Tenant, alice: User, olga: User) -> None:
    told = page(alice, reverse("team", args=["team-a"]))
    assert "Waiting: observe only." in told
    assert "The last update failed." not in told
    assert "stuck" not in page(olga, reverse("all-teams")).partition("<tbody")[2].partition("</tbody")[0].lower()
    Namespace.objects.update(error_code="cluster_unavailable")
    assert "The last update failed." in page(alice, reverse("team", args=["team-a"]))


def test_a_request_says_that_its_plan_waits(
    observed: Cluster, team_a: Tenant, a100: GpuClass, by_alice: Actor, dana: User
) -> None:
    line = RequestedLine(gpu_class=a100.slug, units=1, starts=timezone.now(), ends=timezone.now() + timedelta(days=9))
    filed = file_request("team-a", lines=[line], justification="For the paper.", by=by_alice)
    Plan.objects.filter(request=filed).update(error_code="observe_only", error_text=TEXT)
    told = page(dana, f"/requests/{filed.pk}")
    assert "The dry run is made when an operator ends this." in told
    assert "The plan is being created" not in told


def test_devices_of_others_are_counted_by_namespace(cluster: Cluster, namespace_a: Namespace, olga: User) -> None:
    gpu = {"nvidia.com/gpu": 2}
    pods = [mirrored.pod(f"notebook-{number}", node="a100-1", namespace="lab", **gpu) for number in range(2)]
    ours = mirrored.pod("train", node="a100-1", namespace=namespace_a.name, gpu_class="a100", **gpu)
    plain = mirrored.pod("web", node="a100-1", namespace="shop", cpu=1)
    mirrored.hardware_seen(cluster, Pod=[*pods, ours, plain])
    told = page(olga).partition('id="others"')[2]
    assert '<code>lab</code></th><td class="r">2</td><td>4 <code>nvidia.com/gpu</code>' in told
    assert "shop" not in told
    assert namespace_a.name not in told
    MirrorKind.objects.filter(kind="Pod").update(listed_at=None)
    assert "Unknown: the data of the cluster is outdated." in page(olga)


def test_a_cluster_can_be_set_up_as_observed_only(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("catalog", "settle", "--observe-only")
    assert is_observe_only()
    assert "Observe only" in capsys.readouterr().out
    call_command("catalog", "settle")
    assert is_observe_only(), "settling again ends nothing"
    assert Pool.objects.count() == 1
    assert Cluster.objects.get().observe_only_by is None
