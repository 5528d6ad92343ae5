"""Image references: what is accepted, what is refused, and what lies below a prefix."""

from __future__ import annotations

import pytest

from catalog.images import image_references
from catalog.images.image_references import (
    ImageReference,
    InvalidReference,
    is_below,
    parse_prefix,
    parse_reference,
    parse_registry,
)

DIGEST = "sha256:" + "0a" * 32
VISION = "registry.example.org/vision/"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("registry.example.org/vision/train:1", ImageReference("registry.example.org", ("vision", "train"), "1", "")),
        ("registry.example.org:5000/train", ImageReference("registry.example.org:5000", ("train",), "", "")),
        ("10.0.0.1:80/a/b", ImageReference("10.0.0.1:80", ("a", "b"), "", "")),
        (f"ghcr.io/a/b@{DIGEST}", ImageReference("ghcr.io", ("a", "b"), "", DIGEST)),
        (f"ghcr.io/a/b:V1.0_x-y@{DIGEST}", ImageReference("ghcr.io", ("a", "b"), "V1.0_x-y", DIGEST)),
        ("docker.io/owner/a__b.c--d", ImageReference("docker.io", ("owner", "a__b.c--d"), "", "")),
    ],
)
def test_what_is_read(text: str, found: ImageReference) -> None:
    assert parse_reference(text) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "A registry is"),
        ("train:1", "'' is not possible"),
        # A node would resolve it to Docker Hub.
        ("vision/train", "'vision' is not possible"),
        ("localhost/train", "'localhost' is not possible"),
        ("Registry.example.org/vision/train", "in lower case"),
        ("registry.example.org./vision/train", "A registry is"),
        ("registry.example.org:0/train", "A registry is"),
        ("registry.example.org:65536/train", "A registry is"),
        ("registry.example.org:/train", "A registry is"),
        ("user:password@registry.example.org/vision/train", "A digest is"),
        ("https://registry.example.org/vision/train", "A registry is"),
        ("[::1]:5000/vision/train", "A registry is"),
        ("-registry.example.org/train", "A registry is"),
        (" registry.example.org/vision/train", "A registry is"),
        ("registry.example.org/vision/train\n", "'train\n' is not possible"),
        ("registry.example.org", "'' is not possible"),
        ("registry.example.org/", "'' is not possible"),
        ("registry.example.org/vision/../theirs/train", "'..' is not possible"),
        ("registry.example.org/vision/./train", "'.' is not possible"),
        ("registry.example.org/vision//train", "'' is not possible"),
        ("registry.example.org/vision/%2e%2e/train", "is not possible"),
        ("registry.example.org/vision/Train", "'Train' is not possible"),
        ("registry.example.org/vision/tra\u0456n", "is not possible"),
        ("registry.example.org/vision/.train", "is not possible"),
        ("registry.example.org/vision/train-", "is not possible"),
        ("registry.example.org/vision/a___b", "is not possible"),
        ("registry.example.org/vision:1/train", "'vision:1' is not possible"),
        ("registry.example.org/vision/train:", "A tag has"),
        ("registry.example.org/vision/train:.1", "A tag has"),
        ("registry.example.org/vision/train:a:b", "A tag has"),
        ("registry.example.org/vision/train:" + "a" * 129, "A tag has"),
        ("registry.example.org/vision/train@", "A digest is"),
        ("registry.example.org/vision/train@sha256:0", "A digest is"),
        (f"registry.example.org/vision/train@{DIGEST.upper()}", "A digest is"),
        (f"registry.example.org/vision/train@{DIGEST}@{DIGEST}", "A digest is"),
        # A node would resolve it to docker.io/library/vision.
        ("docker.io/vision", "need an owner"),
        ("index.docker.io/vision/train", "enter docker.io"),
        ("registry-1.docker.io:443/vision/train", "enter docker.io"),
        ("registry.example.org/" + "a" * 290, "at most 300 characters; the reference has 311"),
    ],
)
def test_what_is_not(text: str, words: str) -> None:
    with pytest.raises(InvalidReference) as refused:
        parse_reference(text)
    assert words in str(refused.value)
    assert not is_below(text, ["registry.example.org/", "docker.io/", VISION])


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("registry.example.org/vision/", VISION),
        ("registry.example.org/vision", VISION),
        ("registry.example.org", "registry.example.org/"),
        ("registry.example.org:5000/a/b/", "registry.example.org:5000/a/b/"),
    ],
)
def test_a_prefix_ends_where_a_part_does(typed: str, kept: str) -> None:
    assert parse_prefix(typed) == kept
    assert parse_prefix(kept) == kept


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "vision",
        "vision/",
        "registry.example.org//",
        "registry.example.org/vision//",
        "registry.example.org/*",
        "Registry.example.org/vision",
        "registry.example.org/vision/..",
        "registry.example.org/vision:1",
        "index.docker.io/vision",
        "registry.example.org/" + "a" * 200,
    ],
)
def test_what_is_no_prefix(text: str) -> None:
    with pytest.raises(InvalidReference):
        parse_prefix(text)


@pytest.mark.parametrize(
    ("text", "is_allowed"),
    [
        ("registry.example.org/vision/train", True),
        ("registry.example.org/vision/deep/train:1", True),
        (f"registry.example.org/vision/train@{DIGEST}", True),
        ("registry.example.org/vision", False),
        ("registry.example.org/vision:train", False),
        ("registry.example.org/visions/train", False),
        ("registry.example.org/vision-2/train", False),
        ("registry.example.org/other/vision/train", False),
        ("registry.example.org:443/vision/train", False),
        ("registry.example.org.evil.example/vision/train", False),
        ("evil.example/registry.example.org/vision/train", False),
    ],
)
def test_below_is_by_whole_parts_of_the_same_host(text: str, is_allowed: bool) -> None:
    assert is_below(text, [VISION]) == is_allowed


def test_a_registry_is_a_host() -> None:
    assert parse_registry("ghcr.io") == "ghcr.io"
    for text in ("ghcr", "ghcr.io/", "ghcr.io/a", "GHCR.io", "", "https://ghcr.io", "a" * 200 + ".io"):
        with pytest.raises(InvalidReference):
            parse_registry(text)


def test_names_of_the_catalog_are_no_references() -> None:
    assert not image_references.is_reference("PyTorch 2")
    assert image_references.is_reference("ghcr.io/a")
