"""The catalog's editor: what a form saves, what it refuses beside which field, the plan, states, and who may use it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import system_actor
from accounts.models import Event, Role, User
from catalog.classes import actions as class_actions
from catalog.classes.proposals import queries as proposal_queries
from catalog.classes.proposals.actions import accept_proposals
from catalog.models import DeviceTrial, GpuClass, Pool
from catalog.trials.types import DeviceRequest
from cluster.models import Cluster
from tenants.models import Tenant
from tests.support.rows import make, mirrored
from tests.support.rows.class_form import class_form

pytestmark = pytest.mark.django_db
EDITOR = "/operators/catalog"


@pytest.fixture
def staff(olga: User) -> Client:
    return make.administrator(Client(), olga)


def address(one: GpuClass) -> str:
    return f"{EDITOR}/classes/{one.slug}"


def errors(answer: Any) -> dict[str, list[str]]:
    assert answer.status_code == 422
    return dict(answer.context["form"].errors)


def test_a_class_is_edited_and_recorded(staff: Client, a100: GpuClass, olga: User) -> None:
    labels = {"gpu": "a100", "zone": ""}
    tolerations = [{"key": "x", "operator": "Equal", "value": "y", "effect": "NoExecute", "tolerationSeconds": 60}]
    sent = class_form(a100, borrowing_limit=5, node_labels=labels, tolerations=tolerations, price_per_unit_hour="1.5")
    assert staff.post(address(a100), sent).status_code == 302
    a100.refresh_from_db()
    assert (a100.borrowing_limit, a100.node_labels, a100.tolerations) == (5, labels, tolerations)
    event = Event.objects.get()
    assert (event.verb, event.actor_id) == ("class.edited", olga.pk)
    assert event.after.keys() == {"borrowing_limit", "node_labels", "tolerations", "price_per_unit_hour"}
    assert Pool.objects.exists(), "the cluster follows"


def test_a_form_that_is_sent_as_it_was_shown_changes_nothing(staff: Client, cluster: Cluster) -> None:
    """For a class of each kind of hardware."""
    mirrored.hardware_seen(cluster)
    found = proposal_queries.open_proposals(cluster)
    assert found is not None
    classes = accept_proposals(list(found.proposals), by=system_actor("test"))
    assert len(classes) > 5
    Event.objects.all()
    before = Event.objects.count()
    for one in classes:
        one.refresh_from_db()
        assert staff.get(address(one)).status_code == 200
        assert staff.post(address(one), class_form(one)).status_code == 302, one.slug
    assert Event.objects.count() == before


def test_the_page_sends_what_the_class_has(staff: Client, a100: GpuClass) -> None:
    """What the browser would send, read from the page."""
    text = staff.get(address(a100)).text
    for name, value in a100.node_labels.items():
        assert f'name="node_labels.name" value="{name}"' in text
        assert f'name="node_labels.value" value="{value}"' in text
    assert 'name="tolerations.key" value="nvidia.com/gpu"' in text
    assert "<option selected>NoSchedule</option>" in text
    assert 'value="NVIDIA-A100-SXM4-80GB"' in text


def test_lines_are_stored_as_they_were_whatever_the_browser_ends_them_with(staff: Client, a100: GpuClass) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(terms="Be nice.\nNo mining.\n", terms_version=1)
    sent = class_form(a100, summary="Fast", terms="Be nice.\r\nNo mining.\r\n")
    assert staff.post(address(a100), sent).status_code == 302
    assert Event.objects.get().after == {"summary": "Fast"}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"replicas": 3}, "replicas"),
        ({"price_per_unit_hour": "-1"}, "price_per_unit_hour"),
        ({"price_per_unit_hour": "x"}, "price_per_unit_hour"),
        ({"node_labels": {"a b": "c"}}, "node_labels"),
        ({"node_labels": {"": "c"}}, "node_labels"),
        ({"tolerations": [{"key": "x", "tolerationSeconds": "soon"}]}, "tolerations"),
        ({"tolerations": [{"key": "x", "operator": "Exists", "value": "y"}]}, "tolerations"),
        ({"resource": "nvidia.com/gpu.shared"}, "resource"),
        ({"partition": "9g.99gb"}, "partition"),
        ({"terms": "Be nice."}, "terms_version"),
        ({"run_hours_limit": 0}, "run_hours_limit"),
        ({"colour": "red"}, "__all__"),
    ],
)
@pytest.mark.parametrize("do", ["preview", "save"])
def test_a_refusal_stands_beside_its_field(
    staff: Client, a100: GpuClass, changes: dict[str, Any], field: str, do: str
) -> None:
    assert [*errors(staff.post(address(a100), class_form(a100, do=do, **changes)))] == [field]
    assert not Event.objects.exists()


def test_a_label_that_is_there_twice_is_refused(staff: Client, a100: GpuClass) -> None:
    sent = {**class_form(a100), "node_labels.name": ["a", "a"], "node_labels.value": ["b", "c"]}
    assert errors(staff.post(address(a100), sent)) == {
        "node_labels": ["The label a is there twice. Remove one of them."]
    }


def test_profiles_are_those_that_the_product_can_have(staff: Client, cluster: Cluster, a100: GpuClass) -> None:
    mirrored.hardware_seen(cluster)
    for slug, partition in (("of-a100", "1g.10gb"), ("of-a30", "1g.6gb")):
        make.gpu_class(cluster, slug=slug, partition=partition, resource="nvidia.com/gpu")
    known = staff.get(address(a100)).context["known"]["partition"]
    assert {"none", "1g.10gb"} <= {*known}
    assert "1g.6gb" not in known


def test_a_change_that_somebody_else_made_is_not_overwritten(staff: Client, a100: GpuClass) -> None:
    sent = class_form(a100, borrowing_limit=5)
    GpuClass.objects.update(promise_limit=9)
    assert "Somebody changed this class" in errors(staff.post(address(a100), sent))["__all__"][0]
    a100.refresh_from_db()
    assert (a100.borrowing_limit, a100.promise_limit) == (0, 9)


# ---- the plan ----------------------------------------------------------------------------------------------------


def test_a_preview_says_what_would_change_and_changes_nothing(staff: Client, a100: GpuClass, team_a: Tenant) -> None:
    make.grant(team_a, a100, units=4)
    sent = class_form(a100, do="preview", borrowing_limit=5, node_labels={"gpu": "other"})
    answer = staff.post(address(a100), sent)
    plan = answer.context["plan"]
    assert f"~ class {a100.slug}: borrowing_limit 0 → 5" in plan.lines
    assert len(plan.lines) == 2
    assert (plan.flavor != "", plan.queues, plan.held.teams, plan.held.units) == (True, 1, 1, 4)
    assert 'value="5"' in answer.text, "the form keeps what was typed"
    a100.refresh_from_db()
    assert a100.borrowing_limit == 0
    assert not Event.objects.exists()
    assert not Pool.objects.exists()


def test_other_labels_are_another_flavor_in_every_queue(staff: Client, a100: GpuClass, team_a: Tenant) -> None:
    plan = staff.post(address(a100), class_form(a100, do="preview", node_labels={"gpu": "other"})).context["plan"]
    assert (plan.flavor != "", plan.queues) == (True, 1)


def test_a_plan_names_only_objects_that_change(staff: Client, a100: GpuClass) -> None:
    plan = staff.post(address(a100), class_form(a100, do="preview", summary="Fast")).context["plan"]
    assert (plan.lines, plan.flavor, plan.queues) == ([f'~ class {a100.slug}: summary "" → "Fast"'], "", 0)
    assert staff.post(address(a100), class_form(a100, do="preview")).context["plan"].lines == []


# ---- new classes and states --------------------------------------------------------------------------------------


def test_a_new_class_is_a_draft_and_its_state_is_changed_step_by_step(staff: Client, cluster: Cluster) -> None:
    model = GpuClass(name="X", resource="nvidia.com/gpu", node_labels={"gpu": "x"})
    preview = staff.post(f"{EDITOR}/new", class_form(model, do="preview", slug="x"))
    assert '+ class x: name "X"' in preview.context["plan"].lines
    assert not GpuClass.objects.exists()
    made = staff.post(f"{EDITOR}/new", class_form(model, slug="x"))
    assert (made.status_code, made["Location"]) == (302, f"{EDITOR}/classes/x")
    one = GpuClass.objects.get(slug="x")
    for to, state in (
        ("active", "active"),
        ("retiring", "retiring"),
        ("active", "active"),
        ("retiring", "retiring"),
        ("retired", "retired"),
    ):
        assert staff.post(f"{address(one)}/state", {"to": to, "message": "Too old"}).status_code == 302
        one.refresh_from_db()
        assert one.life_cycle == state
    assert staff.post(f"{address(one)}/state", {"to": "draft"}).status_code == 409
    assert errors(staff.post(f"{EDITOR}/new", class_form(model, slug="choose"))).keys() == {"slug"}
    assert errors(staff.post(f"{EDITOR}/new", class_form(model, slug="x"))).keys() == {"slug"}


def test_what_a_retirement_refuses_stands_beside_its_field(staff: Client, a100: GpuClass) -> None:
    answer = staff.post(f"{address(a100)}/state", {"to": "retiring", "successor": "no-such"})
    assert answer.status_code == 422
    assert answer.context["retire"].errors.keys() == {"successor"}
    assert not answer.context["form"].errors


def test_a_class_can_be_copied(staff: Client, a100: GpuClass) -> None:
    text = staff.get(f"{EDITOR}/new?like={a100.slug}").text
    assert f'value="{a100.product}"' in text
    assert f'value="{a100.slug}"' not in text


def test_a_refused_retirement_leaves_the_form_of_the_class_where_it_saves(staff: Client, a100: GpuClass) -> None:
    text = staff.post(f"{address(a100)}/state", {"to": "retiring", "successor": "no-such"}).text
    [form] = re.findall(r'<form class="stack class-editor"[^>]*>', text)
    assert f'action="{address(a100)}"' in form


def test_an_open_class_keeps_what_teams_were_granted(staff: Client, cluster: Cluster) -> None:
    model = GpuClass(name="X", resource="nvidia.com/gpu", node_labels={"gpu": "x"})
    staff.post(f"{EDITOR}/new", class_form(model, slug="x"))
    one = GpuClass.objects.get(slug="x")
    assert staff.post(address(one), class_form(one, resource="nvidia.com/gpu.shared")).status_code == 302
    one.refresh_from_db()
    class_actions.activate(one.pk, by=system_actor("test"))
    one.refresh_from_db()
    assert errors(staff.post(address(one), class_form(one, resource="nvidia.com/gpu"))).keys() == {"resource"}


# ---- who may -----------------------------------------------------------------------------------------------------


def test_it_is_for_who_may_edit_the_catalog_with_a_second_factor(
    a100: GpuClass, alice: User, dana: User, olga: User
) -> None:
    audra = make.user("Audra", roles=[Role.AUDITOR])
    adam = make.user("Adam", roles=[Role.ADMIN])
    pages = (EDITOR, f"{EDITOR}/new", address(a100))
    for person, expected in ((olga, 200), (adam, 200), (audra, 404), (dana, 404), (alice, 404)):
        client = make.administrator(Client(), person)
        assert {client.get(page).status_code for page in pages} == {expected}, person
    plain = Client()
    plain.force_login(olga)
    for page in pages:
        assert plain.get(page)["Location"].startswith("/account/second-factor")
    for path, sent in (
        (address(a100), class_form(a100, borrowing_limit=5)),
        (f"{address(a100)}/state", {"to": "retiring"}),
    ):
        assert "second factor" in plain.post(path, sent, follow=True).text
    assert not Event.objects.filter(verb__startswith="class.").exists()


def test_what_the_cluster_said_stands_beside_the_fields(staff: Client, cluster: Cluster) -> None:
    selector = "device.driver == '<b>nobody</b>'"
    one = make.gpu_class(
        cluster, interface="dra", resource="dra.portal/h100", device_class="gpu.nvidia.com", device_selector=selector
    )
    assert staff.get(address(one)).text.count("Not tried on the cluster yet.") == 2
    for asked, found in (
        (DeviceRequest("gpu.nvidia.com"), {"verdict": "counted", "resource": "dra.portal/other"}),
        (DeviceRequest("gpu.nvidia.com", selector), {"verdict": "refused", "text": "1:7: <b>undefined</b>"}),
    ):
        DeviceTrial.objects.create(
            cluster=cluster, key=asked.key, device_class=asked.device_class, selector=asked.selector,
            tried_at=timezone.now(), **found,
        )  # fmt: skip
    page = staff.get(address(one)).text
    assert "Kueue counts it as dra.portal/other, not as dra.portal/h100: workloads would never start." in page
    assert "The API server refuses it: 1:7: &lt;b&gt;undefined&lt;/b&gt;" in page


def test_the_seed_of_an_old_guide_is_refused_beside_its_field(staff: Client, cluster: Cluster) -> None:
    one = make.gpu_class(
        cluster, interface="dra", resource="dra.portal/h100", device_class="gpu.nvidia.com", device_selector="true"
    )
    sent = class_form(one, device_selector="device.attributes['memory'] >= 40000")
    (told,) = errors(staff.post(address(one), sent))["device_selector"]
    assert "line 1, column 29" in told
