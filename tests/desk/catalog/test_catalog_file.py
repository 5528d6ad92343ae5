"""`manage.py catalog export | apply`: the file equals the rows; a file is applied completely or not at all."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.core.actor import system_actor
from accounts.models import Event
from catalog.classes import actions
from catalog.classes.proposals import actions as proposal_actions
from catalog.discovery import queries
from catalog.images import actions as image_actions
from catalog.models import GpuClass, Image, Pool
from cluster.models import Cluster
from desk.catalog.file import actions as file_actions
from desk.catalog.file import queries as file_queries
from tenants.models import ClassAccess, Tenant
from tests.support.rows import make, mirrored

pytestmark = pytest.mark.django_db
BY = system_actor("test")
LABELS = {"nvidia.com/gpu.product": "NVIDIA-H100", "nvidia.com/gpu.sharing-strategy": "none"}


def apply(text: str, *flags: str) -> str:
    outcome = file_actions.apply(text, prune="prune" in flags, dry_run="dry run" in flags, by=BY)
    return "\n".join([*outcome.lines, *map(str, outcome.problems)])


def document(classes: str = "", images: str = "") -> str:
    parts = ["version: 1"]
    if classes:
        parts.append("classes:\n" + classes)
    if images:
        parts.append("images:\n" + images)
    return "\n".join(parts) + "\n"


def h100(**fields: Any) -> str:
    values = {"name": "H100", "resource": "nvidia.com/gpu", "node_labels": "{gpu: h100}", **fields}
    return "  h100:\n" + "".join(f"    {name}: {value}\n" for name, value in values.items())


@pytest.fixture
def full(cluster: Cluster, team_a: Tenant, a100: GpuClass) -> GpuClass:
    """A catalog that uses every kind of field."""
    other = make.gpu_class(cluster, slug="h100", name="H100", node_labels=LABELS, price_per_unit_hour="2.5")
    GpuClass.objects.filter(pk=a100.pk).update(
        visibility="named", terms_version=2, terms="Be kind.\nAlways.\n", eligibility="Vision", promise_limit=12,
        interconnect="nvlink", interconnect_note="nvidia-smi topo", interconnect_on="2026-11-01", starter=True,
        run_hours_limit=24, idle_stop_minutes=60, idle_action="stop", idle_minutes=45,
    )  # fmt: skip
    ClassAccess.objects.create(tenant=team_a, gpu_class=a100)
    ends = timezone.now() + timedelta(days=30)
    actions.retire_class(a100.pk, successor=other.slug, message="Newer cards came.", runs_until=ends, by=BY)
    new = image_actions.put_image(
        name="PyTorch 2.7", reference="quay.io/x/y:2.7", vendor="nvidia", min_cuda="12.4", by=BY
    )
    old = image_actions.put_image(name="PyTorch 2.6", reference="quay.io/x/y:2.6", version="2.6", by=BY)
    Image.objects.filter(pk=old.pk).update(successor=new, deprecated_since="2026-10-01")
    return a100


def everything() -> list[Any]:
    kept = ("id", "cluster_id")
    rows = [
        *GpuClass.objects.order_by("slug").values(),
        *Image.objects.order_by("name").values(),
        *ClassAccess.objects.order_by("gpu_class__slug").values("gpu_class__slug", "tenant__slug"),
    ]
    return [{name: value for name, value in row.items() if name not in kept} for row in rows]


# ---- export and import -------------------------------------------------------------------------------------------


def test_applying_an_export_changes_nothing(full: GpuClass) -> None:
    events, before = Event.objects.count(), everything()
    assert apply(file_queries.export()) == ""
    assert apply(file_queries.export(), "prune") == ""
    assert (Event.objects.count(), everything()) == (events, before)


def test_an_export_is_the_same_each_time_and_costs_the_same(full: GpuClass, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(4):
        first = file_queries.export()
    for number in range(9):
        make.gpu_class(full.cluster, slug=f"c{number}", node_labels={"gpu": str(number)})
    with django_assert_num_queries(4):
        second = file_queries.export()
    assert second.startswith(first.partition("classes:")[0])
    assert second == file_queries.export()


def test_an_export_makes_the_same_catalog_elsewhere(full: GpuClass) -> None:
    text, before = file_queries.export(), everything()
    ClassAccess.objects.all().delete()
    GpuClass.objects.all().delete()
    Image.objects.all().delete()
    assert "expected" not in apply(text)
    assert file_queries.export() == text
    assert [{**row, "successor_id": 0} for row in everything()] == [{**row, "successor_id": 0} for row in before]


def test_every_field_that_staff_may_set_is_in_the_file() -> None:
    named = {one.name for one in file_queries.schema()["classes"]}
    assert set(actions.EDITABLE_FIELDS) <= named
    assert named - set(actions.EDITABLE_FIELDS) == {
        "life_cycle",
        "successor",
        "retiring_message",
        "runs_until",
        "teams",
    }


def test_a_hold_is_not_kept_in_the_file(full: GpuClass) -> None:
    text = file_queries.export()
    actions.hold_class(full.pk, reason="a driver update", until=None, by=BY)
    assert file_queries.export() == text
    assert apply(text) == ""
    assert GpuClass.objects.get(pk=full.pk).held_reason == "a driver update"


# ---- applying changes --------------------------------------------------------------------------------------------


def test_a_new_class_is_made_opened_and_shown(cluster: Cluster, team_a: Tenant) -> None:
    told = apply(document(h100(life_cycle="active", visibility="named", teams="[team-a]", promise_limit=8)))
    assert '+ class h100: name "H100"' in told
    made = GpuClass.objects.get(slug="h100")
    assert (made.life_cycle, made.promise_limit, made.access.get().tenant) == ("active", 8, team_a)
    verbs = Event.objects.order_by("id").values_list("verb", flat=True)
    assert list(verbs) == ["class.created", "access.allowed", "class.moved"]
    assert Pool.objects.filter(cluster=cluster).exists()


def test_a_changed_field_is_a_line_an_event_and_work_for_the_pool(a100: GpuClass) -> None:
    text = file_queries.export()
    told = apply(text.replace("    life_cycle: active", "    life_cycle: active\n    promise_limit: 12"))
    assert told == f"~ class {a100.slug}: promise_limit empty → 12"
    assert GpuClass.objects.get().promise_limit == 12
    assert Event.objects.get().verb == "class.edited"
    assert apply(text) == f"~ class {a100.slug}: promise_limit 12 → empty"
    assert GpuClass.objects.get().promise_limit is None


def test_a_dry_run_tells_the_same_and_changes_nothing(full: GpuClass) -> None:
    text = file_queries.export().replace("promise_limit: 12", "promise_limit: 13")
    before, events = everything(), Event.objects.count()
    assert apply(text, "dry run") == f"~ class {full.slug}: promise_limit 12 → 13"
    assert (everything(), Event.objects.count()) == (before, events)
    apply(text)
    assert everything() != before


def test_teams_come_and_go(full: GpuClass, cluster: Cluster) -> None:
    make.tenant(cluster, slug="team-b", namespace=f"b-{full.slug}")
    assert apply(file_queries.export().replace("- team-a", "- team-b")) == f"~ class {full.slug}: teams −team-a +team-b"
    assert full.access.get().tenant.slug == "team-b"
    told = apply(file_queries.export().replace("- team-b", "- team-x"))
    assert f"classes.{full.slug}.teams: Team 'team-x' does not exist." in told
    assert full.access.get().tenant.slug == "team-b"


def test_one_class_takes_the_place_of_another_in_one_file(cluster: Cluster) -> None:
    """Both classes have the same nodes: the class that sorts last by name has to close before the other opens."""
    old = make.gpu_class(cluster, slug="z100", node_labels={"gpu": "h100"})
    text = file_queries.export().replace("life_cycle: active", "life_cycle: retired")
    apply(text.replace("\nimages:", "\n" + h100(life_cycle="active") + "\nimages:"))
    old.refresh_from_db()
    assert (old.life_cycle, GpuClass.objects.get(slug="h100").life_cycle) == ("retired", "active")


def test_a_class_is_retired_with_a_successor_that_the_same_file_opens(a100: GpuClass) -> None:
    retiring = "life_cycle: retiring\n    successor: h100\n    retiring_message: Newer cards came."
    text = file_queries.export().replace("life_cycle: active", retiring)
    told = apply(text.replace("\nimages:", "\n" + h100(life_cycle="active") + "\nimages:"))
    assert f"~ class {a100.slug}: life_cycle active → retiring" in told
    a100.refresh_from_db()
    assert (a100.life_cycle, a100.successor, a100.retiring_message) == (
        "retiring",
        GpuClass.objects.get(slug="h100"),
        "Newer cards came.",
    )
    assert apply(text.replace("Newer cards came.", "Better cards came.")) == (
        f'~ class {a100.slug}: retiring_message "Newer cards came." → "Better cards came."'
    )


@pytest.mark.parametrize("state", ["retiring", "retired"])
def test_an_earlier_export_takes_a_retirement_back_in_one_step(a100: GpuClass, cluster: Cluster, state: str) -> None:
    make.gpu_class(cluster, slug="h100", node_labels={"gpu": "h100"})
    earlier, before = file_queries.export(), everything()
    until = timezone.now() + timedelta(days=9)
    actions.retire_class(a100.pk, successor="h100", message="Newer cards came.", runs_until=until, by=BY)
    if state == "retired":
        actions.move_class(a100.pk, to=state, by=BY)
    assert f"~ class {a100.slug}: life_cycle {state} → active" in apply(earlier, "dry run")
    assert f"~ class {a100.slug}: life_cycle {state} → active" in apply(earlier)
    assert (everything(), file_queries.export()) == (before, earlier)
    assert apply(earlier) == ""


def test_words_of_a_retirement_are_refused_for_an_active_class(a100: GpuClass) -> None:
    text = file_queries.export()
    actions.retire_class(a100.pk, successor="", message="Newer cards came.", runs_until=None, by=BY)
    told = apply(text.replace("life_cycle: active", "life_cycle: active\n    retiring_message: Better cards came."))
    assert f"classes.{a100.slug}.retiring_message: Only a retiring class has" in told
    a100.refresh_from_db()
    assert (a100.life_cycle, a100.retiring_message) == ("retiring", "Newer cards came.")


def test_images_come_change_and_go(cluster: Cluster) -> None:
    old = '  Old: {reference: "q/x:1", deprecated_since: 2026-01-01, successor: New}\n'
    new = '  New: {reference: "q/x:2"}\n'
    apply(document(images=old + new))
    assert Image.objects.get(name="Old").successor == Image.objects.get(name="New")
    assert apply(document(images=new), "prune") == "- image Old: removed"
    assert apply(document(images=new.replace("x:2", "x:3"))) == '~ image New: reference "q/x:2" → "q/x:3"'
    assert Image.objects.get().reference == "q/x:3"


# ---- missing entries and pruning ---------------------------------------------------------------------------------


def test_what_the_file_leaves_out_stays(full: GpuClass) -> None:
    before = everything()
    assert '+ class x: name "X"' in apply(document("  x: {name: X, resource: nvidia.com/gpu}\n"))
    assert [row for row in everything() if row.get("slug") != "x"] == before


def test_pruning_retires_what_the_file_leaves_out(a100: GpuClass) -> None:
    told = apply(document(h100()), "prune")
    assert f"- class {a100.slug}: life_cycle active → retired" in told
    a100.refresh_from_db()
    assert a100.life_cycle == "retired"


@pytest.mark.parametrize("way", ["pruned", "retired by the file"])
def test_a_class_that_is_promised_to_somebody_is_not_orphaned(a100: GpuClass, team_a: Tenant, way: str) -> None:
    make.grant(team_a, a100, units=2)
    text = file_queries.export().replace("life_cycle: active", "life_cycle: retired")
    new = h100(life_cycle="active")
    told = apply(document(new), "prune") if way == "pruned" else apply(text.replace("\nimages:", f"\n{new}\nimages:"))
    assert f"classes.{a100.slug}.life_cycle: " in told
    assert "2 units granted to 1 team" in told
    a100.refresh_from_db()
    assert (a100.life_cycle, GpuClass.objects.count(), Event.objects.count()) == ("active", 1, 0)


# ---- invalid files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classes", "said"),
    [
        (h100(memory_mb=5), "line 8, classes.h100.memory_mb: Unknown field. Did you mean memory_mib?"),
        (h100(resource="gpu"), "classes.h100.resource: 'gpu' has no slash"),
        (h100(price_per_unit_hour="-1"), "classes.h100.price_per_unit_hour: Enter a price of 0 or more"),
        (h100(price_per_unit_hour="0.00001"), "classes.h100.price_per_unit_hour: "),
        (
            h100(interface="dra", device_class="x", device_selector='"device.driver =="'),
            "classes.h100.device_selector: The CEL selector cannot be read at line 1, column 17",
        ),
        (h100(sharing="mpss"), "classes.h100.sharing: Enter one of none, time-slicing, mps, not 'mpss'."),
        (h100(teams="[nobody]"), "classes.h100.teams: Team 'nobody' does not exist."),
        (h100(life_cycle="active", node_labels="{}"), "classes.h100.node_labels: Enter the node labels"),
        (h100(life_cycle="retiring", successor="x"), "classes.h100.successor: There is no class of this name"),
        (h100(life_cycle="active", successor="h100"), "classes.h100.successor: Only a retiring class has"),
        (h100().replace("h100:", "H 100:"), "classes.H 100.slug: "),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_changed(a100: GpuClass, classes: str, said: str) -> None:
    before = everything()
    fine = "  fine: {name: Fine, resource: nvidia.com/gpu, node_labels: {gpu: fine}, life_cycle: active}\n"
    assert said in apply(document(fine + classes))
    assert (everything(), Event.objects.count()) == (before, 0)


def test_an_open_class_cannot_become_another_thing(a100: GpuClass) -> None:
    told = apply(file_queries.export().replace("resource: nvidia.com/gpu", "resource: nvidia.com/gpu.shared"))
    assert f"classes.{a100.slug}.resource: {a100.slug} is open" in told
    assert GpuClass.objects.get().resource == "nvidia.com/gpu"


def test_mistakes_of_several_classes_are_told_together(cluster: Cluster) -> None:
    bad = "  one: {name: One, resource: gpu, weight: -1}\n  two: {name: Two, interface: dra, resource: a/b}\n"
    told = apply(document(bad))
    assert [line.partition(":")[0] for line in told.splitlines() if line.startswith("classes.")] == [
        "classes.one.resource",
        "classes.one.weight",
        "classes.two.device_class",
        "classes.two.device_selector",
    ]


# ---- management command ------------------------------------------------------------------------------------------


def test_the_command_writes_shows_and_applies(a100: GpuClass, tmp_path: Path) -> None:
    path, out = tmp_path / "catalog.yaml", io.StringIO()
    call_command("catalog", "export", str(path))
    call_command("catalog", "export", stdout=out)
    assert path.read_text() == out.getvalue()
    path.write_text(out.getvalue().replace("name: A100 80GB whole card", "name: A100"))
    out = io.StringIO()
    call_command("catalog", "apply", str(path), "--dry-run", stdout=out)
    line = f'~ class {a100.slug}: name "A100 80GB whole card" → "A100"\n'
    assert out.getvalue() == line + "Dry run: nothing was changed.\n"
    out = io.StringIO()
    call_command("catalog", "apply", str(path), stdout=out)
    call_command("catalog", "apply", str(path), stdout=out)
    assert out.getvalue() == line + "No changes.\n"
    assert Event.objects.get().via == "system manage.py"


def test_the_command_ends_with_every_mistake(a100: GpuClass, tmp_path: Path) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_text("version: 1\nclasses: {x: {nam: X}}\n")
    with pytest.raises(CommandError) as error:
        call_command("catalog", "apply", str(path))
    assert str(error.value).splitlines() == [
        "line 2, classes.x.nam: Unknown field. Did you mean name?",
        "line 2, classes.x.name: This field is required: it has no default.",
        "Nothing was changed.",
    ]
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("catalog", "apply", str(tmp_path / "none.yaml"))


# ---- proposals of discovery --------------------------------------------------------------------------------------


def test_every_class_that_discovery_proposes_survives_the_way_through_the_file(cluster: Cluster) -> None:
    mirrored.hardware_seen(cluster)
    found = queries.discover_cluster(cluster)
    assert found is not None
    made = proposal_actions.accept_proposals(list(found.proposals), by=BY)
    assert len(made) > 5
    text, before = file_queries.export(), everything()
    assert apply(text) == ""
    GpuClass.objects.all().delete()
    assert "classes." not in apply(text)
    assert everything() == before


def test_the_example_in_the_documentation_can_be_applied(team_a: Tenant) -> None:
    page = (Path(__file__).parents[3] / "docs" / "operators.md").read_text()
    assert "+ class a100-sxm4-80gb: promise_limit 12" in apply(page.split("```yaml\n")[1].split("```")[0])
    assert GpuClass.objects.get().access.get().tenant == team_a
