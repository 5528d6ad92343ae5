"""Outputs with words missing, doubled or replaced: a sentence says what is wrong, or what was read can be kept."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import chain

import pytest

from accounts.core.actor import Actor
from accounts.models import User
from catalog.checks.queries import check_report
from catalog.interconnect.actions import record_measurement
from catalog.interconnect.queries import measurement_of
from catalog.interconnect.reading import Reading, read_output
from catalog.interconnect.types import AllReduce, Links, UnreadableError
from catalog.models import NodeMeasurement
from cluster.models import Cluster
from tests.catalog.interconnect.outputs import BRIDGED_4, H100_4, LEGEND, NCCL_8, NCCL_OLD, PCIE_2, nccl
from tests.support.rows import make, mirrored

SAMPLES = [
    *(one.replace(LEGEND, "") for one in (H100_4, BRIDGED_4, PCIE_2)),
    NCCL_OLD,
    NCCL_8,
    f"{PCIE_2.replace(LEGEND, '')}\n{nccl('371.42', gpus=2)}",
]
LONG = "9" * 5000
HOSTILE = [
    *(
        "",
        "²",
        "١",
        "-1",
        "0",
        "1",
        "0.001",
        "0.00499",
        "99999.999",
        "100000",
        "1_0",
        "1e-400",
        "1e400",
        "1e-9999999999",
    ),
    *("nan", "sNaN", "Infinity", str(2**63), str(2**63 - 1), LONG, f"0.{LONG}"),
    *("X", "NV", "NV0", "NV²", f"NV{LONG}", "SYS", "GPU0", "GPU1", f"GPU{LONG}", "size", "redop", "busbw", "sum", "#"),
]
# The seed is fixed: each run reads the same.
TWICE = 2000
SENTENCE_MAX = 600


def words(text: str) -> list[str]:
    """With what is between them, at odd places."""
    return re.split(r"(\s+)", text)


def changed(parts: list[str], at: int, word: str) -> list[str]:
    return [*parts[:at], word, *parts[at + 1 :]]


def once(text: str) -> Iterator[str]:
    """One word, or one wherever it is: the links of a matrix are said twice."""
    parts = words(text)
    for at in range(0, len(parts), 2):
        for word in (*HOSTILE, f"{parts[at]} {parts[at]}", f"{parts[at]}{parts[at]}"):
            yield "".join(changed(parts, at, word))
    for one in {*parts[::2]} - {""}:
        for word in HOSTILE:
            yield "".join(word if part == one else part for part in parts)


def several(text: str) -> Iterator[str]:
    """Two to four words, among them such as are elsewhere in the text; and lines missing or doubled."""
    drawn = random.Random(text)
    parts = words(text)
    for _ in range(TWICE // len(SAMPLES)):
        found = parts
        for _ in range(drawn.randint(2, 4)):
            found = changed(found, drawn.randrange(0, len(parts), 2), drawn.choice([*HOSTILE, *parts[::2]]))
        lines = "".join(found).splitlines()
        at = drawn.randrange(len(lines))
        yield "\n".join([*lines[:at], *[lines[at]] * drawn.choice([0, 1, 1, 2]), *lines[at + 1 :]])


def accepted() -> tuple[dict[Links | AllReduce, str], set[str]]:
    """What was read of all of them, each with a text that says it; and the sentences of the others."""
    found: dict[Links | AllReduce, str] = {}
    refused: set[str] = set()
    for text in chain.from_iterable(chain(once(one), several(one)) for one in SAMPLES):
        try:
            read: Reading = read_output(text)
        except UnreadableError as error:
            refused.add(error.sentence)
        else:
            found.update({one: text for one in (read.links, read.all_reduce) if one is not None})
    return found, refused


@pytest.mark.django_db
def test_an_output_is_refused_with_a_sentence_or_can_be_kept(cluster: Cluster, olga: User) -> None:
    found, refused = accepted()
    assert len(found) > 20
    assert len(refused) > 100
    assert max(map(len, refused)) < SENTENCE_MAX
    label = {"nvidia.com/gpu.product": "H100"}
    status = {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "8"}}
    node = mirrored.ready({"metadata": {"name": "n0", "labels": label}, "spec": {}, "status": status})
    mirrored.seen(cluster, Node=[mirrored.with_metadata(node)])
    make.gpu_class(cluster, slug="h100", node_labels=label, weight=1)
    for value, text in found.items():
        made = record_measurement(cluster, "n0", output=text, measured_on=None, by=Actor(olga, "page"))
        kept = [measurement_of(one) for one in NodeMeasurement.objects.filter(pk__in=[one.pk for one in made])]
        assert value in [one.links or one.all_reduce for one in kept]
        assert all(len(one.text) < SENTENCE_MAX for one in kept)
    assert check_report(cluster).findings is not None
