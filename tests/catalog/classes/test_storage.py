"""Storage in the catalog: a class whose unit is 1 GiB of volumes, without nodes or queue, at most one per cluster."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from accounts.core.actor import Actor, system_actor
from accounts.models import User
from catalog.classes import actions
from catalog.classes import queries as catalog
from catalog.classes.capacity import queries as capacity_queries
from catalog.models import GpuClass
from cluster.models import Cluster
from portal.core.errors import Refused, to_refusal
from portal.ui.quota_bar import quota_bar
from portal.ui.text import plural
from tests.support.rows import make
from tests.support.rows.class_form import class_form

pytestmark = pytest.mark.django_db
OPERATOR: Actor = system_actor("operator")


def made(cluster: Cluster, slug: str = "storage", **values: Any) -> GpuClass:
    return actions.create_class(
        slug=slug, cluster=cluster, by=OPERATOR, name="Storage", interface="storage", promise_limit=1000, **values
    )


def test_it_opens_without_labels_and_is_counted_in_gib(cluster: Cluster) -> None:
    one = actions.activate(made(cluster).pk, by=OPERATOR)
    assert (one.life_cycle, catalog.unit_of(one), catalog.flavor_name(one)) == ("active", "GiB", "")
    assert (plural(1, "GiB"), plural(5, "GiB"), plural(0, "GiB")) == ("1 GiB", "5 GiB", "0 GiB")
    assert "3 of 8 granted GiB used" in quota_bar(granted=8, used=3, unit="GiB").sentence


def test_what_it_can_give_is_what_staff_say(cluster: Cluster) -> None:
    """No node provides storage, whatever the mirror contains; without a limit set by staff the capacity is unknown."""
    one = made(cluster)
    capacity = capacity_queries.capacities(cluster, [one])[one.pk]
    assert not capacity.is_known
    assert capacity.problem == "The cluster does not report its storage capacity."
    assert catalog.promise_limits([one]) == {one.pk: 1000}
    one.promise_limit = None
    assert catalog.promise_limits([one]) == {one.pk: None}


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"resource": "nvidia.com/gpu"}, "resource"),
        ({"device_class": "gpu.nvidia.com"}, "device_class"),
        ({"partition": "1g.10gb"}, "partition"),
        ({"sharing": "mps", "replicas": 4, "units_per_workload": 1}, "sharing"),
        ({"node_labels": {"a": "b"}}, "node_labels"),
        ({"tolerations": [{"key": "a", "operator": "Exists"}]}, "tolerations"),
        ({"borrowing_limit": 1}, "borrowing_limit"),
        ({"starter": True}, "starter"),
    ],
)
def test_nothing_of_a_card_is_said_of_it(cluster: Cluster, values: dict[str, Any], field: str) -> None:
    with pytest.raises(Refused) as refused:
        made(cluster, **values)
    assert refused.value.refusal.field == field


@pytest.mark.parametrize("values", [{"resource": "a/b"}, {"sharing": "mps"}, {"borrowing_limit": 1}, {"starter": True}])
def test_the_table_says_no_as_well(cluster: Cluster, values: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        make.storage(cluster, **{"replicas": 2, "units_per_workload": 1, **values} if "sharing" in values else values)


def test_a_cluster_has_one_until_it_is_retired(cluster: Cluster) -> None:
    first = actions.activate(made(cluster).pk, by=OPERATOR)
    with pytest.raises(IntegrityError) as error, transaction.atomic():
        made(cluster, "more")
    refusal = to_refusal(error.value)
    assert refusal is not None
    assert refusal.code == "one_storage"
    actions.move_class(first.pk, to="retiring", by=OPERATOR)
    assert catalog.retirement_notice(GpuClass.objects.get(pk=first.pk)) == "Storage is being retired. Volumes are kept."
    actions.move_class(first.pk, to="retired", by=OPERATOR)
    assert made(cluster, "more").pk


def test_the_editor_makes_it_and_says_beside_its_field_what_storage_has_not(cluster: Cluster, olga: User) -> None:
    client = Client()
    make.administrator(client, olga)
    model = GpuClass(name="Storage", interface="storage", promise_limit=500)
    wrong = client.post("/operators/catalog/new", class_form(model, slug="storage", borrowing_limit=3))
    assert wrong.context["form"].errors["borrowing_limit"] == ["Storage has no borrowing limit: remove it."]
    done = client.post("/operators/catalog/new", class_form(model, slug="storage"))
    assert done.status_code == 302, done.context["form"].errors
    assert GpuClass.objects.get(slug="storage").is_storage


def test_it_cannot_be_held(cluster: Cluster) -> None:
    one = make.storage(cluster)
    with pytest.raises(Refused, match="workloads are not scheduled on it"):
        actions.hold_class(one.pk, reason="a move", until=None, by=OPERATOR)
