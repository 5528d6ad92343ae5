"""Texts for users have the words of ADR 48: templates, sentences of the product and the command, and the docs.

Each entry of `INSTEAD` is a word or phrase that was replaced. ADRs keep the words of their time.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.support.http.contract import contract
from tests.support.rewording import is_prose
from tests.support.source import ROOT, named, product_modules, tracked_files

INSTEAD = {
    r"tenants?": "team",
    r"deput(?:y|ies)": "delegate",
    r"(?:whole )?cards?": "GPU",
    r"(?:over-)?promis(?:e|es|ed|ing)": "allocated to teams, allocation limit, overcommit; guarantees of a class",
    r"tick(?:s|ed)?": "select, selected",
    r"in turns|takes? turns|taking turns": "time-sliced",
    r"yours alone|mostly yours": "whole GPU; fault isolation: partial",
    r"boosts?": "temporary increase",
    r"founded|base lines?|fuses?": "created; new total; ResourceQuota limit",
    r"takes? back|taken back|taking back|give back": "reduce quota",
    r"by itself|by themselves": "automatically",
    r"(?:not )?as wanted": "drift, in sync",
    r"old data": "last updated",
    r"silent": "no cluster updates for N s",
    r"nobody can tell|nobody knows": "unknown",
    r"whoever": "the user who …",
    r"(?-i:What (?:you hold|waits|runs)|Next ends)": "Quota, Queued, Running, Expiring quota",
    r"on the way": "starting",
    r"handed to the queue|another like it|what was asked": "Submitted, Duplicate, Configuration",
    r"take a share|it frees enough": "Switch to time-sliced, Frees enough GPUs",
    r"(?:better|an incident): ?(?:not|tell us)?": "Not recommended for, Report to support",
    r"put it up|take it down|let in": "Publish, Remove, Approve",
    r"ask back|one click": "Request information, Ready to approve",
    r"not well|last word": "Degraded, Last event",
    r"end of the grant": "expires on",
    r"e-mails?|by mail": "email",
}
PATTERN = {re.compile(rf"\b(?:{words})\b", re.IGNORECASE): better for words, better in INSTEAD.items()}
# Words of other products, or quoted ones: file → phrases in which a word may occur.
ALLOWED: dict[str, tuple[str, ...]] = {
    "docs/architecture.md": ("### tenants: teams",),  # the app
    # Codes of the API.
    "tenants/grants/api.py": ("or boost (",),
    "tenants/requests/policy.py": ("or boost (",),
    "tenants/requests/serializers.py": ("boost: ",),
    # Classes, in types.
    "tenants/approvers/delegation/models.py": ("Deputy",),
    "tenants/models.py": ("Tenant",),
}

_TAGS = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|<style.*?</style>|<script.*?</script>", re.DOTALL)
_COMMENTS = re.compile(r"\{% comment %\}.*?\{% endcomment %\}|<!--.*?-->", re.DOTALL)
_ATTRIBUTES = re.compile(r"""(?:label|title|text|note|alt|placeholder|empty|aria-label)=["']([^"']*)["']""")
_MARKUP = re.compile(r"<[^>]*>")
_CODE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)", re.DOTALL)


def words_to_replace(text: str, allowed: tuple[str, ...] = ()) -> list[str]:
    for phrase in allowed:
        text = text.replace(phrase, "")
    return [f"{match[0]!r} → {better}" for pattern, better in PATTERN.items() for match in pattern.finditer(text)]


def template_text(source: str) -> str:
    """The text that a reader sees: between tags, and in attributes and parameters of components."""
    source = _COMMENTS.sub(" ", source)
    said = [_TAGS.sub(" ", value) for value in _ATTRIBUTES.findall(source)]
    return " ".join([_MARKUP.sub(" ", _TAGS.sub(" ", source)), *said])


def page_text(source: str) -> str:
    """Text without code and addresses: names of the API are tested separately."""
    return _CODE.sub(" ", source)


def module_sentences(source: str) -> Iterator[str]:
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            text = page_text(node.value)
            if is_prose(text, whole=False) or re.fullmatch(r"[A-Z][a-z]+", text):
                yield text


def _found(texts: dict[str, str]) -> dict[str, list[str]]:
    return {name: found for name, text in texts.items() if (found := words_to_replace(text, ALLOWED.get(name, ())))}


def test_pages_use_the_words_of_the_field() -> None:
    pages = [path for path in tracked_files() if (ROOT / "templates") in path.parents]
    assert _found({named(path): template_text(path.read_text()) for path in pages}) == {}


def test_sentences_use_the_words_of_the_field() -> None:
    texts = {named(path): "\n".join(module_sentences(path.read_text())) for path in product_modules()}
    assert _found(texts) == {}


def test_the_docs_use_the_words_of_the_field() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    assert _found({named(path): page_text(path.read_text()) for path in pages}) == {}


def test_the_contract_uses_them_in_names() -> None:
    paths, components = contract()["paths"], contract()["components"]["schemas"]
    operations = [operation for methods in paths.values() for operation in methods.values()]
    names = [*paths, *components, *(operation["operationId"] for operation in operations)]
    names += [one["name"] for operation in operations for one in operation.get("parameters", [])]
    names += [name for component in components.values() for name in component.get("properties", {})]
    assert len(names) > 500
    assert [name for name in names if re.search("tenant|deput", name, re.IGNORECASE)] == []


@pytest.mark.parametrize("name", ALLOWED)
def test_every_exception_is_needed(name: str) -> None:
    text = (ROOT / name).read_text()
    assert all(phrase in text and words_to_replace(phrase) for phrase in ALLOWED[name])


@pytest.mark.parametrize(
    ("text", "times"),
    [
        (template_text('<p title="Who is the deputy?">{{ tenant.name }}</p>'), 1),
        (template_text("{% comment %}The tenant{% endcomment %}<h2>What you hold</h2>"), 1),
        (template_text('{% include "x.html" with label="Approve the ticked" %}'), 1),
        (page_text("A *card* is `tenant`; see [this](tenant.md)."), 1),
        ("\n".join(module_sentences('def f():\n    """A tenant."""\n    return f"{x} is not promised", "Boost"')), 2),
        (template_text('<div class="card tick">A discard pile, a postcard</div>'), 0),
    ],
)
def test_a_planted_word_is_seen(text: str, times: int) -> None:
    assert len(words_to_replace(text)) == times
