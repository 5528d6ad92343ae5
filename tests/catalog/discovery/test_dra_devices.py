"""Which devices a DRA class may take, read only from what discovery writes."""

from __future__ import annotations

import pytest

from catalog.discovery.dra_devices import are_disjoint, device_class, equalities, may_take

KNOWN = {"gpu.nvidia.com", "mig.nvidia.com", "gpu.amd.com"}
H100 = {"driver": "gpu.nvidia.com", "type": "gpu", "productName": "NVIDIA H100"}
SLICE = {"driver": "gpu.nvidia.com", "type": "mig", "productName": "NVIDIA H100", "profile": "1g.10gb"}
AMD = {"driver": "gpu.amd.com", "productName": "MI300X"}
OF_H100 = 'device.attributes["gpu.nvidia.com"].productName == "NVIDIA H100"'
OF_SLICE = f'{OF_H100} && device.attributes["gpu.nvidia.com"].profile == "1g.10gb"'


def test_nvidias_driver_has_a_device_class_per_type_and_others_one_per_driver() -> None:
    assert [device_class(one) for one in (H100, SLICE, AMD)] == ["gpu.nvidia.com", "mig.nvidia.com", "gpu.amd.com"]


@pytest.mark.parametrize(
    ("device", "of_class", "selector", "expected"),
    [
        (H100, "gpu.nvidia.com", OF_H100, True),
        (SLICE, "gpu.nvidia.com", OF_H100, False),
        (SLICE, "mig.nvidia.com", OF_SLICE, True),
        (SLICE, "mig.nvidia.com", OF_SLICE.replace("1g.10gb", "2g.20gb"), False),
        (AMD, "gpu.nvidia.com", "true", False),
        (H100, "gpu.nvidia.com", OF_H100.replace("H100", "A100"), False),
    ],
)
def test_several_classes_of_one_driver_share_a_node(
    device: dict[str, str], of_class: str, selector: str, expected: bool
) -> None:
    assert may_take(device, of_class=of_class, selector=selector, known=KNOWN) is expected


def test_a_device_class_of_the_sites_own_may_mean_any_device() -> None:
    assert may_take(SLICE, of_class="fast.site.example", selector=OF_H100, known=KNOWN)
    assert not may_take(AMD, of_class="fast.site.example", selector=OF_H100, known=KNOWN)


@pytest.mark.parametrize(
    "selector",
    [
        "true",
        f'{OF_H100} || device.driver == "gpu.amd.com"',
        "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0",
        'device.attributes["gpu.nvidia.com"].uuid == "GPU-1"',
    ],
)
def test_what_only_the_scheduler_can_evaluate_is_not_guessed(selector: str) -> None:
    assert equalities(selector) == []


def test_equalities_are_read_beside_what_is_not_read() -> None:
    assert equalities(f"{OF_H100} && device.capacity['d'].memory.isGreaterThan(quantity('1Gi'))") == [
        ("gpu.nvidia.com", "productName", "NVIDIA H100")
    ]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (OF_SLICE, OF_SLICE.replace("1g.10gb", "3g.40gb"), True),
        (OF_H100, OF_SLICE, False),
        (OF_H100, "true", False),
        (OF_SLICE, f"{OF_SLICE.replace('1g.10gb', '3g.40gb')} || true", False),
    ],
)
def test_selectors_that_require_different_values_take_no_common_device(one: str, other: str, expected: bool) -> None:
    assert are_disjoint(one, other) is expected
    assert are_disjoint(other, one) is expected
