"""Which image fits which hardware: tables of facts, and the same facts read from node labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import pytest
from django.utils import timezone

from catalog.images import compatibility as image_compatibility
from catalog.images.compatibility import HardwareFacts, caution, compatibility, deprecation, sort_images
from catalog.images.image_references import pinned
from catalog.images.policy import image_problem
from catalog.images.queries import hardware_facts
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorNode
from tests.support.rows import make

TODAY = date(2026, 11, 21)
DIGEST = "sha256:" + "0a" * 32


@dataclass(frozen=True)
class Picture:
    """The fields of an image that the rules read."""

    name: str = "PyTorch"
    vendor: str = "nvidia"
    min_cuda: str = "12.4"
    deprecated_since: date | None = None


A100 = HardwareFacts("A100", "nvidia", "13.0")
MI300X = HardwareFacts("MI300X", "amd", None)
MAX = HardwareFacts("Max 1550", "intel", None)
GAUDI = HardwareFacts("Gaudi 3", "habana", None)
CPU = HardwareFacts("CPU", "", None)
ROCM = Picture(name="PyTorch for AMD", vendor="amd", min_cuda="")
PLAIN = Picture(name="Python", vendor="", min_cuda="")


@pytest.mark.parametrize(
    ("image", "facts", "sentence"),
    [
        (Picture(), A100, ""),
        (Picture(), MI300X, "CUDA images do not run on AMD GPUs; MI300X needs a ROCm image."),
        (ROCM, A100, "ROCm images do not run on NVIDIA GPUs; A100 needs a CUDA image."),
        (ROCM, MI300X, ""),
        (ROCM, MAX, "ROCm images do not run on Intel GPUs; Max 1550 needs a oneAPI image."),
        (Picture(), GAUDI, "CUDA images do not run on Gaudi GPUs; Gaudi 3 needs a Gaudi image."),
        (PLAIN, A100, ""),
        (PLAIN, MI300X, ""),
        (Picture(), CPU, ""),
        (
            Picture(min_cuda="12.10"),
            HardwareFacts("A100", "nvidia", "12.9"),
            "PyTorch needs CUDA 12.10, but the drivers of A100 support 12.9. "
            "Choose an image for an older CUDA, or another class.",
        ),
        (Picture(min_cuda="12.9"), HardwareFacts("A100", "nvidia", "12.10"), ""),
        (Picture(min_cuda="12.4"), HardwareFacts("A100", "nvidia", "12.4"), ""),
        (Picture(min_cuda="13.0"), HardwareFacts("A100", "nvidia", "13"), ""),
        (Picture(), HardwareFacts("A100", "nvidia", None), ""),
    ],
)
def test_an_image_fits_or_says_why_not(image: Picture, facts: HardwareFacts, sentence: str) -> None:
    assert compatibility(image, facts) == sentence


@pytest.mark.parametrize(
    ("image", "facts", "words"),
    [
        (Picture(), A100, ""),
        (
            Picture(),
            HardwareFacts("A100", "nvidia", None),
            "Needs CUDA 12.4; the version supported by the drivers of A100 is unknown.",
        ),
        (Picture(), replace(CPU, has_gpu=False), "Made for NVIDIA GPUs; CPU has none, so its CUDA part is not used."),
        (Picture(), CPU, "Made for NVIDIA GPUs; CPU is not known to have one"),
        (PLAIN, CPU, ""),
    ],
)
def test_what_is_not_known_is_said_and_not_refused(image: Picture, facts: HardwareFacts, words: str) -> None:
    assert compatibility(image, facts) == ""
    said = caution(image, facts)
    assert words in said
    assert bool(words) == bool(said)


def test_a_digest_is_what_the_pod_gets() -> None:
    assert pinned("quay.io/x/y:1", "") == "quay.io/x/y:1"
    assert pinned("quay.io/x/y:1", DIGEST) == f"quay.io/x/y:1@{DIGEST}"


@pytest.mark.parametrize(
    ("since", "successor", "words"),
    [
        (None, "", ""),
        (date(2026, 11, 22), "PyTorch 3", ""),
        (TODAY, "PyTorch 3", "Deprecated since 21 Nov 2026; use PyTorch 3 instead."),
        (TODAY, "", "Deprecated since 21 Nov 2026; there is no replacement yet."),
    ],
)
def test_a_deprecated_image_names_its_successor(since: date | None, successor: str, words: str) -> None:
    assert deprecation(since, successor, TODAY) == words


def test_what_fits_comes_first_then_what_is_deprecated_then_what_does_not_run() -> None:
    found = [Picture("foreign", vendor="amd"), Picture("old", deprecated_since=TODAY), Picture("new"), Picture("newer")]
    ordered = sort_images(found, TODAY, lambda image: compatibility(image, A100))
    assert [image.name for image in ordered] == ["new", "newer", "old", "foreign"]


def test_where_there_is_no_gpu_what_needs_none_comes_first() -> None:
    found = [Picture(), PLAIN, Picture("old", vendor="", deprecated_since=TODAY)]
    assert [image.name for image in sort_images(found, TODAY, lambda _: "", has_gpu=False)] == [
        "Python",
        "PyTorch",
        "old",
    ]
    assert [image.name for image in sort_images(found, TODAY, lambda _: "")] == ["PyTorch", "Python", "old"]


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        (("quay.io/x/y:1", DIGEST, "nvidia", "12.4"), None),
        (("quay.io/x/y:1", "", "", ""), None),
        (("quay.io/x/y:1", "sha256:abc", "", ""), "digest"),
        (("quay.io/x/y:1", DIGEST.upper(), "", ""), "digest"),
        (("quay.io/x/y:1", f"{DIGEST}\n", "", ""), "digest"),
        ((f"quay.io/x/y@{DIGEST}", DIGEST, "", ""), "digest"),
        (("q" * 290, DIGEST, "", ""), "reference"),
        (("quay.io/x/y:1", "", "matrox", ""), "vendor"),
        (("quay.io/x/y:1", "", "nvidia", "12"), "min_cuda"),
        (("quay.io/x/y:1", "", "nvidia", "12.4.1"), "min_cuda"),
        (("quay.io/x/y:1", "", "amd", "12.4"), "min_cuda"),
    ],
)
def test_what_staff_type_wrongly_has_a_field(typed: tuple[str, str, str, str], field: str | None) -> None:
    problem = image_problem(*typed)
    assert (problem[0] if problem else None) == field


def test_every_vendor_that_an_image_can_have_is_called_something() -> None:
    assert all(cards and image for cards, image in image_compatibility.VENDORS.values())


# ---- driver versions of nodes ----------------------------------------------------------------------------------------


def node(cluster: Cluster, name: str, **labels: str) -> None:
    """Keywords are the last part of label names: `product`, `full`, `major`, `minor`."""
    keys = {"product": "nvidia.com/gpu.product"} | {
        part: f"nvidia.com/cuda.runtime-version.{part}" for part in ("full", "major", "minor")
    }
    MirrorNode.objects.create(
        cluster_id=cluster.pk,
        name=name,
        uid=name,
        resource_version=1,
        created_at=timezone.now(),
        schedulable=True,
        ready=True,
        record={"labels": {keys[part]: value for part, value in labels.items()}},
    )


def a_class(cluster: Cluster, product: str, **fields: Any) -> GpuClass:
    return make.gpu_class(
        cluster, slug=product.lower(), name=product, node_labels={"nvidia.com/gpu.product": product}, **fields
    )


@pytest.mark.django_db
def test_a_class_offers_the_least_of_its_nodes(cluster: Cluster, django_assert_num_queries: Any) -> None:
    node(cluster, "a-1", product="A100", full="12.10")
    node(cluster, "a-2", product="A100", full="12.9")
    node(cluster, "a-3", product="A100")
    node(cluster, "h-1", product="H100", major="13", minor="0")
    node(cluster, "l-1", product="L40S", full="none of your business")
    node(cluster, "l-2", product="L4")
    classes = [a_class(cluster, name) for name in ("A100", "H100", "L40S", "L4", "B200")]
    nowhere = make.gpu_class(cluster, slug="nowhere", name="Nowhere", node_labels={})

    with django_assert_num_queries(1):
        found = hardware_facts(cluster, [*classes, nowhere])
    assert {facts.name: facts.cuda for facts in found.values()} == {
        "A100": "12.9",
        "H100": "13.0",
        "L40S": None,
        "L4": None,
        "B200": None,
        "Nowhere": None,
    }


@pytest.mark.django_db
def test_nodes_of_another_cluster_tell_nothing(cluster: Cluster) -> None:
    other = Cluster.objects.create(name="other", notebooks_domain="other.localhost")
    node(other, "a-1", product="A100", full="12.4")
    one = a_class(cluster, "A100")
    assert hardware_facts(cluster, [one])[one.pk] == HardwareFacts("A100", "nvidia", None)
