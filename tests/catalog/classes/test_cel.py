"""CEL is parsed before it is stored: errors show their position; what only the API server can check passes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.classes.validation import cel


@pytest.mark.parametrize(
    "expression",
    [
        "true",
        "device.driver == 'gpu.nvidia.com'",
        "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'",
        "device.attributes['gpu.nvidia.com'].profile in ['1g.10gb', '1g.10gb.me']",
        "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0",
        "device.attributes['gpu.nvidia.com'].driverVersion.isGreaterThan(semver('570.0.0'))",
        "has(device.attributes['gpu.nvidia.com'].type)",
        "device.attributes['gpu.nvidia.com'].?type.orValue('') == 'mig'",
        "cel.bind(of, device.attributes['gpu.nvidia.com'], of.type == 'gpu')",
        "device.driver.lowerAscii().startsWith('gpu.')",
        "device.driver == 'gpu.nvidia.com'\n  && device.attributes['gpu.nvidia.com'].type == 'gpu'",
    ],
)
def test_selectors_that_the_api_server_takes_are_taken(expression: str) -> None:
    assert cel.selector_problem(expression) == ""


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "is empty"),
        ("   ", "is empty"),
        ("device.driver ==", "line 1, column 17: the end is not expected here"),
        ("(device.driver == 'x'", "line 1, column 22: missing ')' at the end"),
        ("device.driver == 'x' and true", "line 1, column 22: 'and' is not expected here"),
        ("device.driver = 'x'", "line 1, column 15: this is not a CEL token"),
        ("true\n&& device.x ==", "line 2, column 15: the end is not expected here"),
        ("devic.driver == 'x'", "`devic.driver`, which does not exist"),
        # As the example of an old guide has it: wrong in three ways.
        ("device.attributes['memory'] >= 40000", "line 1, column 29: found no matching overload"),
        ("device.attributes['memory'] >= 40000", "selected by the domain of the driver and their name"),
        ("device.capacity['gpu.nvidia.com'].memory >= 40000", "compareTo(quantity('40Gi'))"),
        ("device.capacity['gpu.nvidia.com'].memory == '40Gi' && frob(1)", "compareTo(quantity('40Gi'))"),
        ("device.driver == 5", "line 1, column 15: found no matching overload"),
        ("device.driver", "must return a boolean; this selector returns string"),
        ("1 + 1", "must return a boolean; this selector returns int"),
        ("'gpu.nvidia.com'", "must return a boolean; this selector returns string"),
        ("(" * 500 + "true" + ")" * 500, "nested too deeply"),
        ("1" + " + 1" * 3000 + " == 1", "nested too deeply"),
        ("device.driver == '\0'", "a character that cannot be printed"),
        ("device.driver == '\ud800'", "a character that cannot be printed"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(expression: str, said: str) -> None:
    assert said in cel.selector_problem(expression)
    assert bool(said) is bool(cel.selector_problem(expression))


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("device.attributes['gpu.nvidia.com'].memory >= 40000", "device.capacity['gpu.nvidia.com'].memory.compareTo"),
        ('device.attributes["gpu.nvidia.com"]["memory"] >= 40000', "`memory` is a capacity"),
        ("device.attributes['gpu.nvidia.com'].type == 'gpu'", ""),
        ("device.attributes['gpu.example.com'].memory >= 40000", ""),
        ("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('1Gi')) > 0", ""),
    ],
)
def test_a_capacity_that_is_read_as_an_attribute_is_found_by_the_devices_of_the_cluster(
    expression: str, said: str
) -> None:
    found = cel.capacity_problem(expression, {"gpu.nvidia.com": {"memory"}})
    assert said in found
    assert bool(said) is bool(found)


@given(st.text(max_size=200))
def test_nothing_that_is_typed_breaks_it(expression: str) -> None:
    assert isinstance(cel.selector_problem(expression), str)
