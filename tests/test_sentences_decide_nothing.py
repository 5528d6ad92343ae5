"""No code decides by a sentence for people, or edits one: codes and fields decide. New words change no behaviour.

Texts of Kubernetes, Kueue and people are different: they are the only information. Modules that read such texts are
listed with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import Any

import pytest

from tests.support import rewording
from tests.support.source import APPS, ROOT, named, product_modules

# Names of variables and attributes that hold a sentence.
SENTENCES = frozenset({"message", "sentence", "said", "remedy", "stop_message", "wait_sentence"})
METHODS = frozenset(
    {
        "startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "find", "index", "count",
        "replace",
    }
)  # fmt: skip
PATTERNS = frozenset({"search", "match", "fullmatch", "findall", "finditer"})

# Module: names of texts in it that are not the portal's own, and their source.
OTHERS_TEXTS: dict[str, tuple[Collection[str], str]] = {
    "catalog/trials/verdicts.py": ({"message"}, "Kueue's condition QuotaReserved"),
    "cluster/reads/namespace_deletion.py": ({"message"}, "conditions of a namespace, by Kubernetes"),
    "workloads/interruption/preemption.py": ({"message"}, "Kueue's condition Preempted"),
    "workloads/status/explain/admission.py": ({"message"}, "answers of the API server and of webhooks"),
    "workloads/status/explain/autoscaler.py": ({"message"}, "Karpenter's events"),
    "workloads/status/explain/container_start.py": ({"message"}, "the kubelet and registries"),
    "workloads/status/explain/devices.py": ({"message"}, "container runtimes, NVIDIA's toolkit and device plugins"),
    "workloads/status/explain/endings/exit_code.py": ({"message"}, "the kubelet"),
    "workloads/status/explain/nodes.py": ({"message"}, "Kueue's condition QuotaReserved"),
    "workloads/status/explain/queue.py": ({"message"}, "Kueue's condition QuotaReserved"),
    "workloads/status/explain/queue_holds.py": ({"message", "said"}, "Kueue's conditions of queues"),
    "workloads/status/explain/scheduling.py": ({"message"}, "the scheduler's condition PodScheduled"),
    "workloads/status/observations/local_queue.py": ({"message"}, "Kueue's condition QuotaReserved"),
}


def parsed_sentences(source: str, others: Collection[str] = ()) -> Iterator[str]:
    """Expressions that parse one of the portal's sentences. `others`: names of texts from other sources."""
    names = SENTENCES - set(others)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_asked = node.func.attr in METHODS or (node.func.attr == "split" and bool(node.args))
            by_method = is_asked and _name(node.func.value) in names
            by_pattern = node.func.attr in PATTERNS and any(_name(argument) in names for argument in node.args)
            if by_method or by_pattern:
                yield ast.unparse(node)
        elif isinstance(node, ast.Compare) and _compares(node, names):
            yield ast.unparse(node)


def _compares(node: ast.Compare, names: Collection[str]) -> bool:
    """Compares a part of the sentence or the whole; a test for emptiness does not depend on its words."""
    for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
        # `said` may be a set as well.
        is_part = isinstance(operator, ast.In | ast.NotIn) and (_name(right) != "said" or _is_text(left))
        if is_part and _name(right) in names:
            return True
        if isinstance(operator, ast.Eq | ast.NotEq):
            pair = (left, right)
            if any(_name(one) in names for one in pair) and any(_is_text(one) for one in pair):
                return True
    return False


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value != ""
    )


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def test_no_sentence_of_ours_is_parsed() -> None:
    found = {}
    for path in product_modules():
        if path.relative_to(ROOT).parts[0] not in (*APPS, "portal"):
            continue
        others, _reason = OTHERS_TEXTS.get(named(path), ((), ""))
        if parsed := list(parsed_sentences(path.read_text(), others)):
            found[named(path)] = parsed
    assert found == {}


@pytest.mark.parametrize("module", OTHERS_TEXTS)
def test_every_exception_is_needed(module: str) -> None:
    others, reason = OTHERS_TEXTS[module]
    source = (ROOT / module).read_text()
    for name in others:
        assert list(parsed_sentences(source, set(others) - {name})), f"{module}: {name} ({reason})"


@pytest.mark.parametrize(
    "source",
    [
        'run.message.endswith("It restarts automatically.")',
        'row.status.sentence.startswith("Interrupted: ")',
        'row.status.sentence.removeprefix(f"Interrupted: {why}. ")',
        'is_known = "say “" not in told.sentence',
        'if sentence == "Stopped.":\n    pass',
        "found = PATTERN.search(explained.remedy)",
        'first, _, rest = refusal.message.partition(". ")',
        'text = found.sentence.replace(" its pod", " its job")',
    ],
)
def test_a_planted_question_is_seen(source: str) -> None:
    assert list(parsed_sentences(source))


@pytest.mark.parametrize(
    "source",
    ['" ".join(message.split())', "if told.sentence:\n    pass", 'has = told.sentence != ""', "parts.append(sentence)"],
)
def test_what_only_shows_a_sentence_is_none(source: str) -> None:
    assert not list(parsed_sentences(source))


def test_other_words_change_what_decides_by_a_sentence() -> None:
    """`run.py soak reworded` does this to the whole product."""
    source = "def why(): return 'Stopped by its owner.'\ndef may_restart(): return why() != 'Stopped by its owner.'"
    plain: dict[str, Any] = {}
    other: dict[str, Any] = {}
    exec(source, plain)
    exec(compile(rewording.reworded(ast.parse(source), whole=False), "planted", "exec"), other)
    assert not plain["may_restart"]()
    assert other["may_restart"]()
    assert rewording.misses_words(f"assert 'Stopped by its owner.' in {other['why']()!r}")
    assert not rewording.misses_words("assert 422 == 200")


@pytest.mark.parametrize(
    "text",
    ["SELECT name FROM teams", "%Y-%m-%d at %H", "no-cache, no-store", "logging.StreamHandler", "/api/v1/teams list"],
)
def test_what_is_no_sentence_is_left_alone(text: str) -> None:
    assert not rewording.is_prose(text, whole=False)
