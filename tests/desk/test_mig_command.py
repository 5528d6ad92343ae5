"""`manage.py mig`: layouts, refusals and plans as an operator reads them. Needs no database."""

from __future__ import annotations

import json
from io import StringIO

import pytest
import yaml
from django.core.management import CommandError, call_command

from tests.catalog.mig.placement_tables import TABLES, placements

H100 = "NVIDIA-H100-80GB-HBM3"


def run(*words: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("mig", *words, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


@pytest.mark.parametrize("product", TABLES)
def test_layouts_are_a_json_list_of_placements_a_line(product: str) -> None:
    lines = [json.loads(line) for line in run("layouts", product, "--json")[0].splitlines()]
    found = [tuple(sorted(one["profile"] for one in line)) for line in lines]
    expected = set(placements(product))
    assert found == sorted({tuple(sorted(name for _start, name in one)) for one in expected})
    assert all(tuple((one["start"], one["profile"]) for one in line) in expected for line in lines)
    every = run("layouts", product, "--json", "--arrangements")[0].splitlines()
    assert len(every) == len(set(every)) == len(expected)


def test_layouts_in_words_and_by_strategy() -> None:
    assert "3g.40gb at 0–3, 3g.40gb at 4–7" in run("layouts", H100, "--full")[0].splitlines()
    single = run("layouts", "A30", "--single", "--full")[0].splitlines()
    assert "4g.24gb at 0–3" in single
    assert all(len({word.split(" at ")[0] for word in line.split(", ")}) == 1 for line in single)


def test_an_assumed_placement_is_said() -> None:
    assert "assumed" in run("layouts", "NVIDIA-B200")[1]
    assert run("layouts", "NVIDIA-H200")[1] == ""


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (("layouts", "NVIDIA-L4"), "NVIDIA-L4 has no MIG."),
        (("layouts", "NVIDIA-X9"), "NVIDIA-X9 is unknown, and so are its layouts."),
        (("layouts", "NVIDIA-H100-PCIe"), "NVIDIA-H100-PCIe is sold with 80 or 94 or 96 GB"),
        (("layouts", H100, "--memory-gb", "40"), "--memory-gb is 40: NVIDIA-H100-80GB-HBM3 has 80 GB."),
        (("check", H100, "1g.5gb=1"), "1g.5gb=1: this GPU has no such profile. It has 1g.10gb, "),
        (("check", H100, "1g.10gb"), "1g.10gb: write PROFILE=N"),
        (("check", H100, "1g.10gb=-1"), "1g.10gb=-1: write PROFILE=N"),
        (("plan", H100, "--gpus", "0", "1g.10gb=1"), "--gpus is 0: a node has 1 to 64 GPUs."),
    ],
)
def test_what_is_wrong_is_said_with_the_way_out(words: tuple[str, ...], refusal: str) -> None:
    with pytest.raises(CommandError) as raised:
        run(*words)
    assert str(raised.value).startswith(refusal)


def test_a_product_of_several_sizes_is_read_with_one() -> None:
    assert "7g.94gb at 0–7" in run("layouts", "NVIDIA-H800", "--memory-gb", "94", "--full")[0]


def test_instances_without_a_place_exit_with_1() -> None:
    err = StringIO()
    with pytest.raises(SystemExit) as left:
        call_command("mig", "check", H100, "nvidia.com/mig-3g.40gb=2", "1g.10gb=1", stdout=StringIO(), stderr=err)
    assert left.value.code == 1
    assert "beside 3g.40gb at 0–3 and 3g.40gb at 4–7" in err.getvalue()
    assert "fit on one GPU" in run("check", H100, "4g.40gb=1", "3g.40gb=1")[0]


def test_a_plan_in_words_json_and_for_mig_parted() -> None:
    plan = ("plan", H100, "--gpus", "4", "1g.10gb=7", "3g.40gb=2")
    said = run(*plan)[0]
    assert "Serves: 7 × 1g.10gb, 2 × 3g.40gb\nNot served: nothing" in said
    assert "2 GPUs: not needed for this demand, unchanged" in said
    assert "No other layouts of these GPUs serve more instances." in said
    read = json.loads(run(*plan, "--json")[0])
    assert read["served"] == {"1g.10gb": 7, "3g.40gb": 2}
    groups = yaml.safe_load(run(*plan, "--parted", "monday")[0])["mig-configs"]["monday"]
    assert [group["devices"] for group in groups] == [[0], [1]]
    assert {name: count for group in groups for name, count in group["mig-devices"].items()} == {
        "1g.10gb": 7,
        "3g.40gb": 2,
    }
