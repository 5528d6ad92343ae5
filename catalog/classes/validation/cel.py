"""CEL, the language in which a class of dynamic resource allocation selects its devices.

Parsed by the library of the language's authors, so that a syntax error is shown at the field. Functions that only the
API server knows (`quantity`, `semver`) are accepted unchecked: the API server refuses errors there.
"""

from __future__ import annotations

import functools
import re

import cel_expr_python.cel as cel

# Extensions that Kubernetes adds to CEL for device selectors and that this library contains.
_ENVIRONMENT = """
name: device-selector
extensions: [{name: optional, version: latest}, {name: bindings, version: latest}, {name: strings, version: latest}]
variables: [{name: device, type_name: dyn}]
"""
_SYNTAX = re.compile(r"ERROR: <input>:(\d+):(\d+): (.+)")
_UNEXPECTED = re.compile(r"(?:mismatched|extraneous) input (.+?)(?: expecting .*)?$")
_UNDECLARED = re.compile(r"undeclared reference to '([^']+)'")
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
    for name in _UNDECLARED.findall(error):
        if not re.search(rf"\b{re.escape(name)}\s*\(", expression):
            return f"The CEL selector refers to `{name}`, which does not exist; a selector can only use `device`."
    return ""
