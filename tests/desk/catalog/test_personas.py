"""Eight people ask the page "Help me choose". Each answer, with all its sentences, is a file that a person can read.

`UPDATE_GOLDEN=1` writes the files, for a reviewer to read.
"""

from __future__ import annotations

import os
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from textwrap import wrap

import pytest
from django.http import QueryDict

from catalog.contract.types import Axes
from catalog.discovery.products import has_fp8, video_engines
from catalog.guide.recommendation import recommend
from catalog.guide.requirements import ClassOption
from catalog.guide.types import Recommendation, RecommendedClass
from desk.catalog.forms import DEFAULTS, OPTIONAL, RequirementsForm
from portal.ui.text import plural, price_text

DIRECTORY = Path(__file__).parents[2] / "golden" / "personas"
A100, H100, T4 = "NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3", "Tesla-T4"
WHOLE = Axes("nvidia", "none", "none", 1, 81920, "device-plugin", "nvidia.com/gpu")


def offered(slug: str, name: str, product: str, axes: Axes, price: str, *, granted: int, **more: object) -> ClassOption:
    decodes, encodes = video_engines(product, axes.partition)
    unit = "share" if axes.sharing != "none" else "slice" if axes.partition != "none" else "GPU"
    usual = {"units_per_workload": 8 if unit == "GPU" else 1, "granted": granted, "left": granted}
    facts = {"fp8": has_fp8(product), "decodes": decodes, "encodes": encodes}
    return ClassOption(slug, name, axes, unit=unit, price=Decimal(price), **{**usual, **facts, **more})  # type: ignore[arg-type]


def nodes(*free: int, each: int) -> dict[str, object]:
    return {
        "free": sum(free),
        "most_on_one_node": max(free),
        "largest_node": each,
        "allocatable": each * len(free),
        "free_by_node": free,
    }


# A cluster with whole GPUs, slices, shares and older GPUs with video encoders. The team holds something of most.
CATALOG = (
    offered("a100", "A100 80GB", A100, WHOLE, "2.5", granted=16, interconnect="nvswitch", **nodes(8, 8, 2, each=8)),
    offered(
        "h100", "H100 80GB", H100, replace(WHOLE, memory_mib=81559, interface="dra"), "6", granted=8,
        interconnect="nvswitch", **nodes(8, 3, each=8),
    ),
    offered(
        "a100-1g", "A100 MIG 1g.10gb", A100, replace(WHOLE, partition="1g.10gb", memory_mib=9856), "0.38",
        granted=0, **nodes(7, 5, each=14),
    ),
    offered(
        "a100-3g", "A100 MIG 3g.40gb", A100, replace(WHOLE, partition="3g.40gb", memory_mib=40192), "1.2",
        granted=2, **nodes(1, 0, each=4),
    ),
    offered(
        "a100-shared", "A100 time-sliced ×4", A100, replace(WHOLE, sharing="time-slicing", replicas=4), "0.5",
        granted=4, **nodes(6, 2, each=16),
    ),
    offered(
        "a100-mps", "A100 MPS ×8", A100, replace(WHOLE, sharing="mps", replicas=8, memory_mib=10240), "0.3",
        granted=8, **nodes(20, each=32),
    ),
    offered("t4", "T4", T4, replace(WHOLE, memory_mib=15360), "0.4", granted=0, borrowable=2, **nodes(4, 4, each=4)),
    offered(
        "t4-evenings", "T4, evenings", T4, replace(WHOLE, memory_mib=15360), "0.2", granted=2, hours_limit=8,
        **nodes(2, each=4),
    ),
)  # fmt: skip

PERSONAS = {
    "course_notebook": (
        "A lecturer: notebooks for a course, small and with pauses",
        "iso=shared&mem=10&how=interactive",
    ),
    "hyperparameter_sweep": (
        "A researcher: a sweep over many small models, hours each, every trial on its own",
        "iso=own&mem_gib=6&how=batch&resume=yes",
    ),
    "sixteen_gpus": (
        "An engineer: training on 16 GPUs of several nodes for days, sensitive to the interconnect",
        "iso=own&mem=80&how=several&cards=nodes&units=16&hours=days&sensitive=interconnect&resume=yes",
    ),
    "fine_tuning_60_gib": ("A doctoral student: fine-tuning on one GPU with 60 GiB", "iso=own&mem_gib=60&how=batch"),
    "low_latency": (
        "A product team: inference with a latency target, nobody else on the GPU",
        "iso=alone&mem=40&how=serving&sensitive=latency&hours=days&resume=no",
    ),
    "resumable_batch": (
        "An analyst: batch inference over a day, resumes from its checkpoint, as cheap as possible",
        "iso=own&mem=10&how=batch&hours=days&resume=yes&prefer=price",
    ),
    "video_transcoding": ("A media team: transcoding of videos", "iso=own&mem_gib=4&how=batch&video=encode"),
    "knows_nothing": ("Somebody who answers no question", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", PERSONAS)
def test_each_person_gets_the_answer_of_their_file(name: str) -> None:
    who, query = PERSONAS[name]
    form = RequirementsForm.asked(QueryDict(query))
    assert form.is_valid(), form.errors
    text = written(who, form, recommend(form.needs(), CATALOG))
    path = DIRECTORY / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), f"tests/golden/personas/{name}.txt is different; UPDATE_GOLDEN=1 writes it"


@pytest.mark.parametrize("name", PERSONAS)
def test_every_class_is_the_answer_or_has_a_reason_against_it(name: str) -> None:
    form = RequirementsForm.asked(QueryDict(PERSONAS[name][1]))
    assert form.is_valid()
    found = recommend(form.needs(), CATALOG)
    named = [found.best.slug] if found.best else []
    assert sorted([*named, *(one.slug for one in found.others)]) == sorted(one.slug for one in CATALOG)
    assert all(one.why.endswith(".") for one in found.others)


def test_every_persona_has_a_file_and_every_file_a_persona() -> None:
    assert {path.stem for path in DIRECTORY.iterdir()} == set(PERSONAS)


# ---- the file --------------------------------------------------------------------------------------------------------


def written(who: str, form: RequirementsForm, found: Recommendation) -> str:
    lines = [who, "", "Answers"]
    for name, field in form.fields.items():
        value = form.data.get(name, DEFAULTS.get(name, ""))
        choices = dict(getattr(field, "choices", ()))
        is_replaced = name == "mem" and form.data.get("mem_gib")
        if value and not is_replaced and (name not in OPTIONAL or value != DEFAULTS.get(name)):
            lines += item(f"{field.label} {choices.get(value, value)}")
    best = found.best
    lines += ["", f"Recommendation: {sized(best)}" if best else "No class fits"]
    for reason in found.reasons:
        lines += item(reason)
    if best:
        lines += item(best.start)
        lines += ["", "Trade-off", *item(found.trade_off)]
    if found.end_text:
        lines += ["", *item(found.end_text)]
    for title, one in (("Runner-up", found.runner_up), ("Starts now", found.starts_now)):
        if one is not None and (best is None or one.slug != best.slug):
            lines += ["", f"{title}: {sized(one)}", *item(f"{one.why} {one.start}".strip())]
    lines += ["", "Why not the others"]
    for other in found.others:
        lines += item(f"{other.name}: {other.why}")
    return "\n".join([*lines, ""])


def sized(one: RecommendedClass) -> str:
    size = plural(one.units, one.unit)
    size = f"{one.workers} workers of {size}" if one.workers > 1 else size
    return f"{one.name}, {size}, {price_text(one.price * one.units * one.workers)} per hour"


def item(text: str) -> list[str]:
    return wrap(text, 100, initial_indent="  - ", subsequent_indent="    ")
