"""Layouts as names that say them, and how one is added to a file of the site that has others."""

from __future__ import annotations

import pytest
import yaml

from catalog.discovery.mig_profiles import card_of
from catalog.mig.layout_names import UNNAMED, layout_name, named_shares
from catalog.mig.layouts import layouts
from catalog.mig.parted import NotAdded, parted_groups, parted_text, shares_of, with_config
from catalog.mig.profile_names import profile_names
from portal.core.connections.object_names import namespaced_name

SHARES = [({"1g.10gb": 7}, 2), ({"3g.40gb": 2}, 2)]
NAME = "portal-2gpu_7x1g.10gb-2gpu_2x3g.40gb"
FILE = """\
# Ours: ask Ada before you change it.
version:   v1
mig-configs:   # one for each room

    # all off
    all-disabled:
        - devices: all
          mig-enabled: false

    "all-1g.10gb":
        - {devices: all, mig-enabled: true, mig-devices: {"1g.10gb": 7}}
# end, without a line feed"""


@pytest.mark.parametrize(
    "product", ["NVIDIA-A30", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3", "NVIDIA-RTX-PRO-6000-Blackwell"]
)
def test_every_layout_of_a_gpu_has_a_name_that_says_it(product: str) -> None:
    card = card_of(product)
    names = profile_names(card) if card is not None else None
    assert card is not None
    assert names is not None
    found = {}
    for layout in layouts(card, names):
        shares = shares_of([(layout, 4)])
        name = layout_name(shares)
        if name != UNNAMED:
            assert named_shares(name) == shares
            assert len(name) <= 63
            found[name] = shares
    assert len(found) > 5
    assert len({str(sorted(shares[0][0].items())) for shares in found.values()}) == len(found)


def test_a_name_keeps_the_groups_and_their_order() -> None:
    assert layout_name(SHARES) == NAME
    assert named_shares(NAME) == SHARES
    assert layout_name(SHARES[::-1]) != NAME
    assert layout_name([({"1g.10gb+me": 1, "1g.10gb": 6}, 8)]) == "portal-8gpu_1x1g.10gb.me_6x1g.10gb"


def test_what_is_too_long_for_a_label_has_no_name_of_its_own() -> None:
    shares = [({"1g.10gb": number, "2g.20gb": 1, "3g.40gb": 1}, 1) for number in (1, 2)]
    assert layout_name(shares) == UNNAMED


@pytest.mark.parametrize(
    "name",
    [
        "planned", "all-1g.10gb", "portal-", "portal-2gpu", "portal-2gpu_", "portal-0gpu_7x1g.10gb",
        "portal-2gpu_0x1g.10gb", "portal-2gpu_7x1g", "portal-2gpu_7x1g.10gb_1x1g.10gb",
        "portal-2gpu_7x1g.10gb-1x3g.40gb",
        "x-portal-2gpu_7x1g.10gb", "portal-200gpu_7x1g.10gb",
    ],
)  # fmt: skip
def test_other_names_say_no_layout(name: str) -> None:
    assert named_shares(name) is None


def test_a_layout_is_added_and_the_rest_stays_byte_for_byte() -> None:
    found = with_config(FILE, NAME, SHARES)
    assert yaml.safe_load(found)["mig-configs"][NAME] == parted_groups(SHARES)
    head, rest = FILE.partition("# one for each room\n")[::2]
    assert found.startswith(f"{head}# one for each room\n")
    assert found.endswith(rest)
    assert len(found) > len(FILE) + 100
    assert with_config(found, NAME, SHARES) == found, "once"


def test_it_is_what_is_printed() -> None:
    printed = yaml.safe_load(parted_text(NAME, SHARES))
    assert printed["mig-configs"] == {NAME: parted_groups(SHARES)}
    assert [group["devices"] for group in parted_groups(SHARES)] == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [", "is not YAML"),
        ("just words", "is not a configuration of mig-parted"),
        ("version: v2\nmig-configs:\n  a: []\n", "is not a configuration of mig-parted"),
        ("version: v1\n", "is not a configuration of mig-parted"),
        ("version: v1\nmig-configs:\n", "is not a configuration of mig-parted"),
        ("version: v1\nmig-configs: {a: []}\n", "has no block mig-configs"),
        ('{"version": "v1", "mig-configs": {"a": []}}', "has no block mig-configs"),
        ("version: v1\nmig-configs: &all\n  a: []\n", "has no block mig-configs"),
        ("note: |\n  x\nversion: v1\nmig-configs:\n  a: []\nmig-configs:\n  b: []\n", "has no block mig-configs"),
        (f"version: v1\nmig-configs:\n  {NAME}: []\n", "has another layout"),
    ],
)
def test_where_it_cannot_be_added_for_sure_it_is_not(text: str, why: str) -> None:
    with pytest.raises(NotAdded, match=why):
        with_config(text, NAME, SHARES)


def test_the_name_of_an_object_in_a_setting() -> None:
    assert namespaced_name("") is None
    assert namespaced_name("gpu-operator/mig.layouts") == ("gpu-operator", "mig.layouts")
    for wrong in ("layouts", "a/b/c", "/b", "a/", "A/b", "a b/c"):
        with pytest.raises(ValueError, match="NAMESPACE/NAME"):
            namespaced_name(wrong)
