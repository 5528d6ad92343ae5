"""`gpu ops mig-sets` and `gpu ops measurements`: what the pages of nodes do, from a shell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from accounts.models import User
from catalog.models import NodeMeasurement
from cluster.models import Cluster, MirrorKind
from tests.catalog.interconnect.outputs import nccl
from tests.cli.command import Gpu
from tests.support.rows import mirrored

pytestmark = pytest.mark.django_db
MEASURED = ("ops", "measurements")


@pytest.fixture
def gpu(gpu_of: Callable[..., Gpu], olga: User, cluster: Cluster) -> Gpu:
    mirrored.hardware_seen(cluster, Pod=[], Workload=[], Job=[])
    return gpu_of(olga, "read", "admin")


def test_sets_are_listed_and_planned(gpu: Gpu) -> None:
    listed = gpu("ops", "mig-sets", "list")
    assert (listed.code, listed.err) == (0, "")
    assert listed.out.splitlines()[0].split()[:3] == ["SET", "PRODUCT", "NODE"]
    [one, *_] = gpu("ops", "mig-sets", "list", "--json").json
    name, node = one["set"], one["nodes"][0]["name"]
    assert f"{name} " in listed.out
    plan = ("ops", "mig-sets", "plan", name, "--node", node, "--want", "1g.10gb=3")
    told = gpu(*plan)
    assert (told.code, told.err) == (0, "")
    found = gpu(*plan, "--json").json
    assert found["served"].get("1g.10gb", 0) + found["unserved"].get("1g.10gb", 0) == 3
    assert [line["name"] for line in found["nodes"]] == [node]
    assert "3 × 1g.10gb" in told.out
    assert told.out.splitlines()[0].startswith("Proven: no")
    assert gpu(*plan, "--break-grants").code == 0
    assert b'"keeps_grants":false' in gpu.between.asked[-1].content.replace(b": ", b":")
    MirrorKind.objects.filter(kind="Pod").update(problem="It refused.")
    assert gpu(*plan).out.startswith("There are no current updates from the cluster")
    refused = gpu("ops", "mig-sets", "plan", "no-such")
    assert (refused.code, refused.err.strip()) == (6, "There is no such set of nodes.")


def test_a_measurement_is_recorded_listed_and_withdrawn(gpu: Gpu, tmp_path: Path) -> None:
    log = tmp_path / "measured.log"
    log.write_text(nccl("371.42", gpus=2))
    made = gpu(*MEASURED, "record", "a100-1", str(log), "--on", "2026-01-31")
    assert (made.code, made.err) == (0, "")
    row = NodeMeasurement.objects.get()
    assert (row.node, f"{row.measured_on}") == ("a100-1", "2026-01-31")
    number = str(row.pk)
    listed = gpu(*MEASURED, "list", "a100-1").out
    assert "371.42 GB/s" in listed
    assert "Olga" in listed
    done = gpu(*MEASURED, "withdraw", "a100-1", number, "--reason", "Another job ran")
    assert (done.code, done.err) == (0, "")
    assert ": Another job ran" in done.out
    assert gpu(*MEASURED, "list", "a100-1", "--json").json["items"][0]["withdrawn_because"] == "Another job ran"
    assert gpu(*MEASURED, "withdraw", "a100-1", number, "--reason", "Again").out == done.out
    log.write_text("hello")
    refused = gpu(*MEASURED, "record", "a100-1", str(log))
    assert refused.code == 6
    assert "contains neither" in refused.err


def test_what_cannot_be_read_is_told_before_anybody_is_asked(gpu: Gpu, tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    for words, sentence in (
        ((*MEASURED, "record", "a100-1", str(tmp_path / "none")), "Cannot read"),
        ((*MEASURED, "record", "a100-1", str(binary)), "is not text."),
        (("ops", "mig-sets", "plan", "s", "--want", "three"), "'three' is not"),
    ):
        refused = gpu(*words)
        assert (refused.code, gpu.between.asked) == (2, [])
        assert sentence in refused.err


def test_for_all_others_there_is_none(gpu_of: Callable[..., Gpu], bob: User, gpu: Gpu, tmp_path: Path) -> None:
    log = tmp_path / "measured.log"
    log.write_text(nccl("371.42", gpus=2))
    gpu(*MEASURED, "record", "a100-1", str(log))
    number = str(NodeMeasurement.objects.get().pk)
    bobs = gpu_of(bob, "read", "admin")
    for words in (("list", "a100-1"), ("record", "a100-1", str(log)), ("withdraw", "a100-1", number, "--reason", "x")):
        assert bobs(*MEASURED, *words).code == 6
    assert bobs("ops", "mig-sets", "list").code == 6
    assert NodeMeasurement.objects.get().withdrawn_at is None
