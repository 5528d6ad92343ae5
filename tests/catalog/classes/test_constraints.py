"""Impossible classes: refused by the database, and before that by a sentence beside the field, in every interface."""

from __future__ import annotations

import io
import itertools
import json
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.db.models import CheckConstraint
from django.test import Client

from accounts.core.actor import system_actor
from accounts.models import User
from catalog.classes import actions
from catalog.classes.validation import field_checks
from catalog.models import GpuClass
from cluster.models import Cluster
from portal.core.errors import CONSTRAINT_SENTENCES, Refused, from_database_error
from tests.support.rows import make
from tests.support.rows.class_form import class_form

pytestmark = pytest.mark.django_db
BY = system_actor("test")
DRA = {"interface": "dra", "resource": "dra.portal/gpu", "device_class": "gpu.nvidia.com", "device_selector": "true"}
STORAGE = {"interface": "storage", "resource": "", "node_labels": {}}
SHARED = {"sharing": "time-slicing", "replicas": 4, "units_per_workload": 1}

# (what is typed, the constraint behind it, the field, words of the error message)
CASES: list[tuple[dict[str, Any], str, str, str]] = [
    (
        {**SHARED, "sharing": "mps", "partition": "1g.10gb"},
        "no_mps_on_mig",
        "sharing",
        "does not support MPS on a MIG slice",
    ),
    (
        {**SHARED, "units_per_workload": 2},
        "one_share_each",
        "units_per_workload",
        "1 unit per workload for a shared class, not 2",
    ),
    ({**SHARED, "replicas": 1}, "replicas", "replicas", "2 or more replicas for a shared class, not 1"),
    ({"replicas": 4}, "replicas", "replicas", "1 replica for a class that is not shared, not 4"),
    ({"resource": "gpu"}, "interface", "resource", "'gpu' has no slash"),
    ({"resource": ""}, "interface", "resource", "has no slash"),
    ({"interface": "none"}, "interface", "resource", "A class without GPUs has no resource name"),
    ({"interface": "storage", "node_labels": {}}, "interface", "resource", "A class without GPUs has no resource name"),
    ({**STORAGE, "partition": "1g.10gb"}, "interface", "partition", "Storage has no partition"),
    ({**STORAGE, "borrowing_limit": 1}, "storage", "borrowing_limit", "Storage has no borrowing limit"),
    ({**STORAGE, "starter": True}, "storage", "starter", "Storage has no starter"),
    ({"device_class": "gpu.nvidia.com"}, "interface", "device_class", "Only a DRA class has a device class"),
    ({**DRA, "device_selector": ""}, "interface", "device_selector", "The CEL selector is empty"),
    ({**DRA, "device_class": ""}, "interface", "device_class", "Enter the DeviceClass"),
    ({**DRA, "resource": "gpu"}, "interface", "resource", "has no slash"),
    ({"price_per_unit_hour": Decimal("-0.01")}, "not_negative", "price_per_unit_hour", "Enter a price of 0 or more"),
    ({"weight": Decimal(-1)}, "not_negative", "weight", "Enter a weight of 0 or more, not -1"),
    ({"units_per_workload": 0}, "sizes", "units_per_workload", "at least 1 unit"),
    ({"cpu_per_unit": 0}, "sizes", "cpu_per_unit", "at least 1 core"),
    ({"memory_gib_per_unit": 0}, "sizes", "memory_gib_per_unit", "at least 1 GiB"),
    ({"run_hours_limit": 0}, "run_hours", "run_hours_limit", "Enter a time limit of 1 to "),
    ({"idle_stop_minutes": 1}, "idle_stop", "idle_stop_minutes", "Enter 5 to "),
    ({"idle_minutes": 4}, "idle_minutes", "idle_minutes", "Enter 5 to 10080 minutes"),
    ({"log_retention_days": 366}, "log_retention", "log_retention_days", "Enter 0 to 365 days"),
    ({"max_units": 0}, "max_units", "max_units", "Enter at least 1 unit"),
    ({"node_minutes": 0}, "node_minutes", "node_minutes", "Enter 1 to 1440 minutes"),
    ({"damping_minutes": 1441}, "damping", "damping_minutes", "Enter 0 to 1440 minutes"),
    ({"terms_version": 2}, "terms", "terms", "Version 2 of the terms has no text"),
    ({"terms": "Be kind."}, "terms", "terms_version", "Enter a version of 1 or more"),
]
# Only the cluster would refuse these values: the database accepts them.
SHAPES: list[tuple[dict[str, Any], str, str]] = [
    ({**DRA, "device_selector": "device.driver =="}, "device_selector", "line 1, column 17"),
    ({**DRA, "device_selector": "devise.driver == 'x'"}, "device_selector", "can only use `device`"),
    ({"resource": "NVIDIA.com/gpu"}, "resource", "is not a resource name"),
    ({"resource": "nvidia.com/"}, "resource", "is not a resource name"),
    ({"node_labels": {"gpu": "a b"}}, "node_labels", "'a b' is not a valid value"),
    ({"node_labels": {"a/b/c": "x"}}, "node_labels", "is not a valid name of a node label"),
    (
        {"tolerations": [{"key": "x", "operator": "exists"}]},
        "tolerations",
        "one of Exists, Equal as the operator of a toleration, not 'exists'",
    ),
    ({"tolerations": [{"key": "x", "effect": "Never"}]}, "tolerations", "one of NoSchedule, PreferNoSchedule"),
    ({"tolerations": [{"operator": "Exists", "value": "x"}]}, "tolerations", "has no value; remove 'x'"),
]
A100 = {"vendor": "nvidia", "product": "NVIDIA-A100-SXM4-80GB"}
T4 = {"vendor": "nvidia", "product": "Tesla-T4"}
MPS = {**SHARED, "sharing": "mps"}
# Fields that contradict each other or the hardware: the database accepts them too.
HARDWARE: list[tuple[dict[str, Any], str, str]] = [
    (
        {**A100, "resource": "nvidia.com/mig-1g.10gb", "partition": "9g.99gb"},
        "partition",
        "nvidia.com/mig-1g.10gb counts units of the partition 1g.10gb, not 9g.99gb: enter 1g.10gb as the partition, "
        "or the resource nvidia.com/mig-9g.99gb.",
    ),
    (
        {"resource": "nvidia.com/mig-1g.10gb.shared", **SHARED},
        "partition",
        "counts units of the partition 1g.10gb, not",
    ),
    ({"resource": "amd.com/cpx_nps4", "partition": "qpx_nps1"}, "partition", "enter cpx_nps4 as the partition"),
    ({"resource": "amd.com/spx_nps1", "partition": "cpx_nps1"}, "partition", "counts whole GPUs, not cpx_nps1"),
    (
        {**DRA, "partition": "2g.20gb", "device_selector": 'device.attributes["gpu.nvidia.com"].profile == "1g.10gb"'},
        "partition",
        "The CEL selector takes devices of the profile 1g.10gb, not 2g.20gb: enter 1g.10gb as the partition, or change",
    ),
    ({**T4, "partition": "1g.10gb"}, "partition", "Tesla-T4 has no MIG, so it has no 1g.10gb: enter none, or"),
    (
        {**A100, "resource": "nvidia.com/mig-9g.99gb", "partition": "9g.99gb"},
        "partition",
        "NVIDIA-A100-SXM4-80GB (7 compute slices, 80 GB) has no MIG profile 9g.99gb: enter the profile that its nodes",
    ),
    ({**A100, "partition": "1g.6gb"}, "partition", "has no MIG profile 1g.6gb"),
    ({**A100, "partition": "half"}, "partition", "'half' is not a MIG profile"),
    ({**MPS, "replicas": 49}, "replicas", "at most 48 clients on one GPU: enter 2 to 48 replicas, not 49"),
    (
        {**MPS, "replicas": 17, "product": "Tesla-V100-SXM2-32GB"},
        "replicas",
        "at most 16 clients on one GPU Tesla-V100-SXM2-32GB: enter 2 to 16 replicas, not 17",
    ),
]
BOTH = [(values, field, said) for values, _, field, said in CASES] + SHAPES + HARDWARE


def name_of(value: object) -> str:
    return "-".join(f"{name}" for name in value) if isinstance(value, dict) else ""


def base(**values: Any) -> dict[str, Any]:
    return {"name": "X", "resource": "nvidia.com/gpu", "node_labels": {"gpu": "x"}, **values}


# ---- database constraints ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("values", "constraint", "field", "said"), CASES, ids=name_of)
def test_the_database_refuses_it_with_a_sentence(
    cluster: Cluster, values: dict[str, Any], constraint: str, field: str, said: str
) -> None:
    with pytest.raises(IntegrityError, match=f"gpu_class_{constraint}") as error:
        GpuClass.objects.create(cluster=cluster, slug="x", **base(**values))
    refusal = from_database_error(error.value)
    assert refusal is not None
    assert refusal.code != "conflict"


def test_every_constraint_of_the_table_has_a_sentence_and_a_case() -> None:
    ours = {one.name for one in GpuClass._meta.constraints if isinstance(one, CheckConstraint)}
    assert ours - CONSTRAINT_SENTENCES.keys() == set()
    # No user types a hold into a field: see test_holding.py.
    assert ours - {f"gpu_class_{name}" for _, name, _, _ in CASES} == {"gpu_class_held"}


def test_a_hold_without_a_moment_or_a_reason_is_refused(cluster: Cluster) -> None:
    for values in ({"held_reason": "repair"}, {"held_since": "2027-01-01T00:00Z"}, {"held_until": "2027-01-01T00:00Z"}):
        with transaction.atomic(), pytest.raises(IntegrityError, match="gpu_class_held"):
            make.gpu_class(cluster, slug="x", **values)


def test_what_is_let_through_is_taken_by_the_database(cluster: Cluster) -> None:
    """The rules that give messages accept nothing that the constraints refuse, for every combination of inputs."""
    axes: dict[str, list[Any]] = {
        "interface": ["device-plugin", "dra", "none"],
        "resource": ["", "nvidia.com/gpu"],
        "device_class": ["", "gpu.nvidia.com"],
        "device_selector": ["", "true"],
        "sharing": ["none", "mps", "time-slicing"],
        "partition": ["none", "1g.10gb"],
        "replicas": [1, 2],
        "units_per_workload": [0, 1, 2],
        "terms": ["", "Be kind."],
        "terms_version": [0, 1],
    }
    typed = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    fine = [values for values in typed if not field_checks.class_problems({**vars(GpuClass()), **base(), **values})]
    assert 20 < len(fine) < 100 < len(typed)
    rows = [GpuClass(cluster=cluster, slug=f"x{n}", **{**base(), **values}) for n, values in enumerate(fine)]
    GpuClass.objects.bulk_create(rows)
    refused = 0
    for values in (one for one in typed[::97] if one not in fine):
        refused += 1
        with pytest.raises(IntegrityError, match="gpu_class_"), transaction.atomic():
            GpuClass.objects.create(cluster=cluster, slug="y", **{**base(), **values})
    assert refused > 10


# ---- actions, admin and catalog file -----------------------------------------------------------------------------


@pytest.mark.parametrize(("values", "field", "said"), BOTH, ids=name_of)
def test_making_it_is_refused_beside_its_field(cluster: Cluster, values: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(Refused) as refused:
        actions.create_class(slug="x", by=BY, **base(**values))
    assert (refused.value.refusal.field, said in str(refused.value)) == (field, True), str(refused.value)
    assert not GpuClass.objects.exists()


@pytest.mark.parametrize(("values", "field", "said"), BOTH, ids=name_of)
def test_changing_it_is_refused_beside_its_field(
    cluster: Cluster, values: dict[str, Any], field: str, said: str
) -> None:
    made = actions.create_class(slug="x", by=BY, **base())
    with pytest.raises(Refused) as refused:
        actions.edit_class(made.pk, by=BY, **values)
    assert (refused.value.refusal.field, said in str(refused.value)) == (field, True), str(refused.value)
    assert GpuClass.objects.filter(pk=made.pk, **base()).exists()


@pytest.mark.parametrize(("values", "field", "said"), BOTH, ids=name_of)
def test_the_editor_says_it_beside_the_field(
    cluster: Cluster, olga: User, values: dict[str, Any], field: str, said: str
) -> None:
    answer = add_on_page(olga, GpuClass(**base(**values)))
    assert answer.status_code == 422, "the form is shown again"
    assert said in " ".join(answer.context["form"].errors[field])
    assert not GpuClass.objects.exists()


@pytest.mark.parametrize(("values", "field", "said"), BOTH, ids=name_of)
def test_the_file_says_it_with_its_path(
    cluster: Cluster, tmp_path: Any, values: dict[str, Any], field: str, said: str
) -> None:
    typed = {name: float(value) if isinstance(value, Decimal) else value for name, value in base(**values).items()}
    path = tmp_path / "catalog.yaml"
    path.write_text(json.dumps({"version": 1, "classes": {"x": typed}}, indent=1).replace('"version": 1', "version: 1"))
    with pytest.raises(CommandError) as error:
        call_command("catalog", "apply", str(path), stdout=io.StringIO())
    assert f"classes.x.{field}: " in str(error.value)
    assert said in str(error.value)
    assert not GpuClass.objects.exists()


@pytest.mark.parametrize(
    "values",
    [
        {**A100, "partition": "1g.10gb"},
        {**A100, "partition": "1g.10gb.me", "resource": "nvidia.com/mig-1g.10gb.me"},
        {**A100, "partition": "1g.10gb+me", "resource": "nvidia.com/mig-1g.10gb.me"},
        {**A100, **SHARED, "partition": "1g.10gb", "resource": "nvidia.com/mig-1g.10gb.shared"},
        {"vendor": "nvidia", "product": "NVIDIA-H200", "partition": "1g.18gb", "resource": "nvidia.com/mig-1g.18gb"},
        {"vendor": "nvidia", "product": "NVIDIA-H100-NVL", "partition": "1g.12gb"},
        {"vendor": "nvidia", "product": "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "partition": "1g.24gb.gfx"},
        # A product that is not known may have any profile.
        {"vendor": "nvidia", "product": "NVIDIA-B400", "partition": "2g.99gb", "resource": "nvidia.com/mig-2g.99gb"},
        {**DRA, **A100, "partition": "1g.10gb+me"},
        {
            **DRA,
            **A100,
            "partition": "1g.10gb+me",
            "device_selector": 'device.attributes["gpu.nvidia.com"].profile == "1g.10gb+me"',
        },
        {"vendor": "amd", "resource": "amd.com/cpx_nps4", "partition": "cpx_nps4"},
        {"vendor": "amd", "resource": "amd.com/gpu", "partition": "cpx_nps1"},
        {"vendor": "amd", "resource": "amd.com/spx_nps1"},
        {**MPS, "replicas": 48},
        {**MPS, "replicas": 16, "product": "Tesla-V100-SXM2-32GB"},
    ],
    ids=str,
)
def test_what_the_hardware_has_is_accepted(cluster: Cluster, values: dict[str, Any]) -> None:
    assert actions.create_class(slug="x", by=BY, **base(**values)).pk


def test_a_class_from_before_a_rule_is_still_edited_and_opened_only_without_fault(
    cluster: Cluster, tmp_path: Any
) -> None:
    wrong = {"partition": "9g.99gb", "product": "NVIDIA-A100-SXM4-80GB", "vendor": "nvidia"}
    made = make.gpu_class(cluster, slug="old", **wrong)
    assert actions.edit_class(made.pk, by=BY, price_per_unit_hour=Decimal(2)).price_per_unit_hour == 2
    with pytest.raises(Refused) as refused:
        actions.edit_class(made.pk, by=BY, product="Tesla-T4")
    assert refused.value.code == "no_mig"
    exported = io.StringIO()
    call_command("catalog", "export", stdout=exported)
    path = tmp_path / "catalog.yaml"
    path.write_text(exported.getvalue())
    call_command("catalog", "apply", str(path), stdout=io.StringIO())
    draft = make.gpu_class(cluster, slug="draft", life_cycle="draft", **wrong)
    with pytest.raises(Refused) as refused:
        actions.activate(draft.pk, by=BY)
    assert refused.value.code == "unknown_profile"


def test_a_slug_that_is_taken_is_said_beside_it(cluster: Cluster, olga: User) -> None:
    made = actions.create_class(slug="x", by=BY, **base())
    with pytest.raises(IntegrityError) as error, transaction.atomic():
        actions.create_class(slug="x", by=BY, **base())
    refusal = from_database_error(error.value)
    assert refusal is not None
    assert (refusal.field, refusal.message) == ("slug", "A class of this name already exists in this cluster.")
    answer = add_on_page(olga, made)
    assert answer.context["form"].errors["slug"] == [refusal.message]
    assert GpuClass.objects.count() == 1


def add_on_page(by: User, model: GpuClass) -> Any:
    client = Client()
    make.administrator(client, by)
    return client.post("/operators/catalog/new", class_form(model, slug="x"))
