"""The registry answers as the specification of registries says, and as real ones refuse."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError

import pytest

from devcluster.node.registry import Answer, Registry


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry("127.0.0.1") as found:
        yield found


def test_it_refuses_by_repository(registry: Registry) -> None:
    registry.answers["team/limited"] = Answer(429, "TOOMANYREQUESTS", "too many")
    said = {}
    for repository in ("team/limited", "team/unknown"):
        with pytest.raises(HTTPError) as refused:
            urllib.request.urlopen(f"{registry.url}/v2/{repository}/manifests/1")
        said[repository] = refused.value.code, json.load(refused.value)["errors"][0]["code"]
    assert said == {"team/limited": (429, "TOOMANYREQUESTS"), "team/unknown": (404, "MANIFEST_UNKNOWN")}


def test_an_image_for_another_processor(registry: Registry) -> None:
    registry.only_for("team/arm", "arm64")
    with urllib.request.urlopen(f"{registry.url}/v2/team/arm/manifests/1") as answer:
        index = json.load(answer)
    assert [one["platform"]["architecture"] for one in index["manifests"]] == ["arm64"]


def test_the_node_finds_it_by_name(registry: Registry, tmp_path: Path) -> None:
    registry.trust(tmp_path, "registry.real.node")
    assert registry.url in (tmp_path / "registries" / "registry.real.node" / "hosts.toml").read_text()
