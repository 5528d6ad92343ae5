"""CEL, the language in which a class of dynamic resource allocation selects its devices.

Parsed by the library of the language's authors, so that an error is shown at the field, with the types of a device as
the API server declares them. Functions that only the API server knows (`quantity`, `semver`) are accepted unchecked: it
refuses errors there, see `catalog/trials`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Mapping

import cel_expr_python.cel as cel

# Extensions that Kubernetes adds to CEL for device selectors and that this library contains.
_ENVIRONMENT = """
name: device-selector
extensions: [{name: optional, version: latest}, {name: bindings, version: latest}, {name: strings, version: latest}]
variables:
- {name: device, type_name: dyn}
- {name: device.driver, type_name: string}
- name: device.attributes
  type_name: map
  params: [{type_name: string}, {type_name: map, params: [{type_name: string}, {type_name: dyn}]}]
- name: device.capacity
  type_name: map
  params: [{type_name: string}, {type_name: map, params: [{type_name: string}, {type_name: kubernetes.Quantity}]}]
"""
_SYNTAX = re.compile(r"ERROR: <input>:(\d+):(\d+): (.+)")
_UNEXPECTED = re.compile(r"(?:mismatched|extraneous) input (.+?)(?: expecting .*)?$")
_MISMATCH = re.compile(r"ERROR: <input>:(\d+):(\d+): (found no matching overload for .+)")
_UNDECLARED = re.compile(r"undeclared reference to '([^']+)'")
_HINTS = {
    "kubernetes.Quantity": " Compare a capacity with a quantity, for example "
    "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0.",
    "map(string, ": " Attributes and capacities are selected by the domain of the driver and their name, for example "
    "device.attributes['gpu.nvidia.com'].type; memory is a capacity.",
}
_TOO_DEEP = "The CEL selector is nested too deeply to be read."


def selector_problem(expression: str) -> str:
    """Returns a sentence why this is no valid device selector; "" if no problem is found."""
    if not expression.strip():
        return "The CEL selector is empty; `device.driver == 'gpu.nvidia.com'`, for example, selects by driver."
    if any(not one.isprintable() and not one.isspace() for one in expression):
        return "The CEL selector contains a character that cannot be printed."
    try:
        _environment().compile(expression, disable_check=True)
    except RuntimeError as error:
        return _syntax_sentence(str(error))
    try:
        result = _environment().compile(expression).return_type()
    except RuntimeError as error:
        return _unknown_sentence(expression, str(error))
    if result not in (cel.Type.BOOL, cel.Type.DYN):
        return f"A CEL selector must return a boolean; this selector returns {result.name().lower()}."
    return ""


_ATTRIBUTE = re.compile(
    r"""device\.attributes\[(["'])(?P<domain>[^"']+)\1\](?:\.(?P<name>\w+)|\[(["'])(?P<key>[^"']+)\4\])"""
)


def capacity_problem(expression: str, capacities: Mapping[str, Collection[str]]) -> str:
    """Returns a sentence if it reads as an attribute what devices have as a capacity; "" otherwise. `capacities`: of
    the cluster's devices, by domain, without names that are attributes as well.
    """
    for found in _ATTRIBUTE.finditer(expression):
        domain, name = found["domain"], found["name"] or found["key"]
        if name in capacities.get(domain, ()):
            return (
                f"`{name}` is a capacity of the devices of {domain}, not an attribute: write, for example, "
                f"device.capacity['{domain}'].{name}.compareTo(quantity('40Gi')) >= 0."
            )
    return ""


@functools.cache
def _environment() -> cel.Env:
    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(_ENVIRONMENT))


def _syntax_sentence(error: str) -> str:
    found = _SYNTAX.search(error)
    if found is None or "recursion depth" in error:
        return _TOO_DEEP
    line, column, reason = found.groups()
    reason = reason.removesuffix(" [INVALID_ARGUMENT]").removeprefix("Syntax error: ").replace("'<EOF>'", "the end")
    if unexpected := _UNEXPECTED.match(reason):
        reason = f"{unexpected[1]} is not expected here"
    elif reason.startswith("token recognition error"):
        reason = "this is not a CEL token"
    return f"The CEL selector cannot be read at line {line}, column {column}: {reason}."


def _unknown_sentence(expression: str, error: str) -> str:
    if found := _MISMATCH.search(error):
        line, column, reason = found.groups()
        reason = reason.removesuffix(" [INVALID_ARGUMENT]")
        hint = next((text for words, text in _HINTS.items() if words in reason), "")
        return f"The CEL selector is wrong at line {line}, column {column}: {reason}.{hint}"
    for name in _UNDECLARED.findall(error):
        if not re.search(rf"\b{re.escape(name)}\s*\(", expression):
            return f"The CEL selector refers to `{name}`, which does not exist; a selector can only use `device`."
    return ""
