"""Replaces every sentence in the product's modules by other words when the modules are imported.

A test that compares codes still passes; a test that fails has to quote the words that it misses. Texts of Kubernetes,
SQL, patterns and markup stay: only what looks like prose is replaced. `run.py soak reworded` runs all tests this way.
"""

from __future__ import annotations

import ast
import functools
import importlib.abc
import importlib.machinery
import itertools
import re
import sys
from collections.abc import Generator, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

import pytest

from tests.support.source import APPS, ROOT, product_modules

VARIABLE = "REWORD_SENTENCES"
PACKAGES = (*APPS, "portal")
# Names whose values are configuration or are drawn as markup; no user reads them as a sentence.
LEFT_OUT = ("portal/settings.py", "portal/urls.py", "portal/templatetags/", "/migrations/")
# These modules read texts of Kubernetes and Kueue, which begin with a small letter or a number: only whole sentences
# are the portal's own.
READERS = ("workloads/status/", "workloads/interruption/preemption.py", "cluster/", "catalog/")

_WORD = re.compile(r"[A-Za-z]{2,}")
_PROSE = re.compile(r"[A-Za-z0-9 .,;:!?'’\"“”()–/%×·…→-]+")
_SQL = r"\b(SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|JOIN|UNION|ORDER BY|AND|OR|COALESCE|CASE|COPY)\b"
_NO_SENTENCE = re.compile(rf"//|^-| -|[A-Z]{{3,}} [A-Z]{{3,}}|{_SQL}|%[a-zA-Z(]|/v1|openid|^[a-z-]+(, ?[a-z-]+)*$")


def other_words(text: str) -> str:
    """Reverses each word: the length stays the same, and the result occurs nowhere else."""
    return _WORD.sub(lambda word: word[0][::-1].swapcase(), text)


def is_prose(text: str, *, whole: bool) -> bool:
    """`whole`: only a sentence from its capital letter to its end counts."""
    if (
        " " not in text.strip()
        or len(_WORD.findall(text)) < 2
        or not _PROSE.fullmatch(text)
        or _NO_SENTENCE.search(text)
    ):
        return False
    return not whole or bool(re.match(r"[A-Z]", text) and text.rstrip().endswith((".", "?", "!")))


class _Rewording(ast.NodeTransformer):
    def __init__(self, *, whole: bool) -> None:
        self.whole = whole

    def visit_Expr(self, node: ast.Expr) -> Any:
        return node if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, str) and is_prose(node.value, whole=self.whole):
            return ast.copy_location(ast.Constant(other_words(node.value)), node)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.JoinedStr:
        plain = "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
        if not is_prose(plain, whole=self.whole):
            return node
        parts = [
            ast.Constant(other_words(part.value)) if isinstance(part, ast.Constant) else part for part in node.values
        ]
        return ast.copy_location(ast.JoinedStr(parts), node)

    # Patterns are used in comparisons; the values of a match are often codes.
    def visit_Compare(self, node: ast.Compare) -> ast.Compare:
        return node

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.MatchValue:
        return node


def reworded(tree: ast.Module, *, whole: bool) -> ast.Module:
    return ast.fix_missing_locations(_Rewording(whole=whole).visit(tree))


def sentences(tree: ast.AST, *, whole: bool = False) -> Iterator[str]:
    """Returns the prose in a module, including the parts of f-strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and is_prose(node.value, whole=whole):
            yield node.value


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), path)
        name = path.removeprefix(f"{ROOT}/")
        return compile(reworded(tree, whole=name.startswith(READERS)), path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in PACKAGES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or not isinstance(spec.loader, SourceFileLoader) or not spec.origin:
            return spec
        if any(part in spec.origin for part in LEFT_OUT):
            return spec
        spec.loader = _Loader(fullname, spec.origin)
        return spec


def install() -> None:
    """Has to run before the first module of the product is imported."""
    sys.meta_path.insert(0, _Finder())


# ---- failures that are expected ---------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test may fail if it misses words of the product. Needs `-vv`: otherwise pytest shortens the expected text."""
    report = yield
    if report.failed and call.excinfo and misses_words(str(call.excinfo.value)):
        report.outcome, report.wasxfail = "skipped", "misses the product's words"
    return report


def misses_words(failure: str) -> bool:
    """Whether the failure has a word and its replacement, or two successive words of a sentence of the product."""
    words = {word for word in _WORD.findall(failure) if len(word) > 2}
    return any(other_words(word) in words for word in words) or bool(_pairs(failure) & _pairs_of_product())


def _pairs(text: str) -> set[tuple[str, str]]:
    return set(itertools.pairwise(_WORD.findall(text)))


@functools.cache
def _pairs_of_product() -> frozenset[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for path in product_modules():
        if path.relative_to(ROOT).parts[0] in PACKAGES:
            for text in sentences(ast.parse(path.read_text())):
                found |= _pairs(text)
    return frozenset(found)
