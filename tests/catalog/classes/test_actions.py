"""The catalog's verbs and their two interfaces for staff: the admin site and the command."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import get_resolver

from accounts.core.actor import Actor, system_actor
from accounts.models import Event, Role, User
from catalog.classes import actions, policy
from catalog.images import actions as image_actions
from catalog.models import GpuClass, Image, Pool
from catalog.pool import actions as pool_actions
from cluster.models import Cluster
from portal.core.errors import Refused
from tests.support.rows import make, mirrored

BY = system_actor("test")


def draft(cluster: Cluster, slug: str, **values: Any) -> GpuClass:
    defaults = {"name": slug, "resource": "nvidia.com/gpu", "node_labels": {"gpu": slug}}
    return actions.create_class(slug=slug, cluster=cluster, by=BY, **{**defaults, **values})


def refused(verb: Any, *args: Any, **values: Any) -> str:
    with pytest.raises(Refused) as found:
        verb(*args, by=BY, **values)
    return found.value.code


def test_a_class_goes_from_draft_to_retired_and_back(cluster: Cluster) -> None:
    made = draft(cluster, "a100")
    assert refused(actions.move_class, made.pk, to="retired") == "bad_step"
    for step in ("active", "retiring", "retired", "active"):
        assert actions.move_class(made.pk, to=step, by=BY).life_cycle == step
    assert refused(actions.move_class, made.pk, to="draft") == "bad_step"
    assert Event.objects.filter(verb="class.moved").count() == 4


def test_every_change_of_an_open_class_is_work_for_the_pool(cluster: Cluster) -> None:
    made = draft(cluster, "a100")
    assert not Pool.objects.exists()
    actions.activate(made.pk, by=BY)
    pool = Pool.objects.get(cluster=cluster)
    actions.edit_class(made.pk, borrowing_limit=3, by=BY)
    assert Pool.objects.get(pk=pool.pk).generation == pool.generation + 1
    actions.edit_class(made.pk, borrowing_limit=3, by=BY)
    assert Pool.objects.get(pk=pool.pk).generation == pool.generation + 1
    assert Event.objects.get(verb="class.edited").before == {"borrowing_limit": 0}


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        ({"gpu": "a"}, {"gpu": "b"}, ""),
        ({"gpu": "a"}, {"gpu": "a"}, "selector_overlaps"),
        ({"gpu": "a"}, {"gpu": "a", "mode": "mps"}, "selector_overlaps"),
        ({"gpu": "a", "mode": "mps"}, {"gpu": "a"}, "selector_overlaps"),
        ({"gpu": "a"}, {}, "no_labels"),
        ({"gpu": "a"}, {f"l{n}": "x" for n in range(9)}, "many_labels"),
    ],
)
def test_classes_of_one_resource_name_have_to_be_told_apart(
    cluster: Cluster, first: dict[str, str], second: dict[str, str], code: str
) -> None:
    actions.activate(draft(cluster, "one", node_labels=first).pk, by=BY)
    other = draft(cluster, "two", node_labels=second)
    if code:
        assert refused(actions.activate, other.pk) == code
    else:
        actions.activate(other.pk, by=BY)


def test_no_more_resource_names_than_a_queue_can_count(cluster: Cluster) -> None:
    for number in range(16):
        actions.activate(draft(cluster, f"c{number}", resource=f"example.com/c{number}").pk, by=BY)
    assert refused(actions.activate, draft(cluster, "c16", resource="example.com/c16").pk) == "too_many_resources"


def test_what_an_open_class_is_does_not_change_under_those_who_hold_it(cluster: Cluster) -> None:
    made = draft(cluster, "a100")
    actions.edit_class(made.pk, resource="nvidia.com/gpu.shared", by=BY)
    actions.activate(made.pk, by=BY)
    assert refused(actions.edit_class, made.pk, resource="nvidia.com/gpu") == "in_use"
    assert refused(actions.edit_class, made.pk, colour="red") == "unknown_field"


# ---- Django admin ------------------------------------------------------------------------------------------------


def browser(user: User) -> Client:
    client = Client()
    make.administrator(client, user)
    return client


def test_the_admin_shows_classes_and_leads_to_their_editor(a100: GpuClass, olga: User) -> None:
    address = f"/admin/catalog/gpuclass/{a100.pk}/change/"
    client = browser(olga)
    assert f"/operators/catalog/classes/{a100.slug}" in client.get(address).text
    assert client.post(address, {"slug": a100.slug, "name": "Other"}).status_code == 403
    assert client.get("/admin/catalog/gpuclass/add/").status_code == 403
    assert "/operators/catalog" in client.get("/admin/catalog/gpuclass/").text
    assert not Event.objects.exists()


def test_the_admin_puts_images(olga: User, cluster: Cluster) -> None:
    values = {"name": "Lab", "reference": "quay.io/x/y:1", "contents": "", "kind": "notebook", "position": 10}
    assert browser(olga).post("/admin/catalog/image/add/", values).status_code == 302
    assert Image.objects.get().reference == "quay.io/x/y:1"
    assert Event.objects.filter(verb="image.put").count() == 1


def test_staff_without_the_role_do_not_come_into_the_admin(a100: GpuClass) -> None:
    decides = make.user("Walter", roles=[Role.APPROVER])
    assert browser(decides).get("/admin/catalog/gpuclass/", follow=True).status_code == 404


# ---- management command ------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("cohort", ["research", "gpu-portals", "gpu-portal-", "gpu-portal--team-a", "gpu-portal-A"])
def test_a_cohort_that_the_worker_may_not_use_is_refused(cohort: str) -> None:
    with pytest.raises(CommandError, match="choose gpu-portal or a name such as gpu-portal-2"):
        call_command("catalog", "settle", "--cohort", cohort)
    assert not Cluster.objects.exists()
    call_command("catalog", "settle", "--cohort", "gpu-portal-2", stdout=io.StringIO())
    assert Cluster.objects.get().cohort == "gpu-portal-2"


@pytest.mark.django_db
def test_from_an_empty_database_to_a_catalog() -> None:
    with pytest.raises(CommandError, match="No cluster is set up yet"):
        call_command("catalog", "propose")
    call_command("catalog", "settle", stdout=io.StringIO())
    with pytest.raises(CommandError, match="has not listed the nodes yet"):
        call_command("catalog", "propose")
    mirrored.hardware_seen(Cluster.objects.get(), "morning")
    out = io.StringIO()
    call_command("catalog", "propose", stdout=out)
    assert "a100-sxm4-80gb" in out.getvalue()
    assert not GpuClass.objects.exists()
    with pytest.raises(CommandError, match="Not proposed: b200"):
        call_command("catalog", "accept", "b200")
    call_command("catalog", "accept", stdout=io.StringIO())
    assert dict(GpuClass.objects.values_list("slug", "life_cycle")) == {
        "a100-sxm4-80gb": "active",
        "a100-sxm4-80gb-2g-20gb": "active",
        "a100-sxm4-80gb-shared": "active",
    }


def test_people_without_a_role_are_refused_by_every_verb(cluster: Cluster, alice: User) -> None:
    by = Actor(user=alice, via="page")
    made = draft(cluster, "a100")
    for verb in (
        lambda: actions.edit_class(made.pk, name="x", by=by),
        lambda: actions.activate(made.pk, by=by),
        lambda: image_actions.put_image(name="x", reference="y", by=by),
        lambda: image_actions.remove_image(1, by=by),
        lambda: pool_actions.configure_cluster(name="x", notebooks_domain="y", cohort="z", by=by),
    ):
        with pytest.raises(Refused) as found:
            verb()
        assert found.value.code == "not_allowed"


@pytest.mark.django_db
def test_no_class_hides_a_page_of_the_catalog(cluster: Cluster) -> None:
    """Class pages share the path: every fixed address under /catalog/ is a reserved slug, and no other slug is."""
    routes = [str(one.pattern) for one in get_resolver().url_patterns]
    fixed = {route.removeprefix("catalog/") for route in routes if route.startswith("catalog/") and "<" not in route}

    assert fixed == policy.RESERVED_SLUGS
    with pytest.raises(Refused, match="choose another name for the class"):
        actions.create_class(slug="choose", cluster=cluster, by=BY)
