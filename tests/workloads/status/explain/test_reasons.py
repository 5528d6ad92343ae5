"""docs/reasons.md names every reason, with who can end it, and says of each whether it is staged on a control plane."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from tests.workloads.cases.situations_nodes import BESIDE, ON_NODES
from tests.workloads.cases.situations_queue import IN_QUEUE, OF_OTHERS
from tests.workloads.situations.kubelets.written import OF_NODES, SAYINGS
from tests.workloads.situations.kubelets.written_again import ENDINGS
from tests.workloads.situations.refusals.written import REFUSALS
from tests.workloads.situations.removals.written import REMOVALS
from tests.workloads.situations.test_problems_live import STAGED
from workloads.status.explain import types

ROOT = Path(__file__).parents[4]
DOCUMENT = ROOT / "docs" / "reasons.md"
ROW = re.compile(r"^\| `(\w+)` \| [^|]+ \| (you|operators|nobody) \| (cluster|kubelet|message) \|$", re.MULTILINE)
# Each with everything that a person is told of it.
WRITTEN = (IN_QUEUE, OF_OTHERS, ON_NODES, BESIDE, REFUSALS, REMOVALS, SAYINGS, OF_NODES, ENDINGS)


def documented() -> dict[str, tuple[str, str]]:
    rows = ROW.findall(DOCUMENT.read_text())
    assert len(rows) == len({reason for reason, _, _ in rows}), "named once"
    return {reason: (who, tested) for reason, who, tested in rows}


def written() -> set[str]:
    return {one.reason for cases in WRITTEN for one in cases.values()}


def test_every_reason_is_documented_with_who_can_end_it() -> None:
    known = {reason: str(types.who_acts(reason)) for reasons in types._BY_WHO.values() for reason in reasons.split()}
    told = {reason: who for reason, (who, _) in documented().items()}
    assert told == known


def test_what_is_said_to_be_staged_is_and_nothing_else() -> None:
    staged = written() | {one.reason for one in STAGED.values()}
    told = documented()
    assert {reason for reason, (_, tested) in told.items() if tested != "message"} == staged & told.keys()


def test_for_each_that_is_staged_everything_that_a_person_is_told_is_compared() -> None:
    staged = {reason for reason, (_, tested) in documented().items() if tested != "message"}
    assert not staged - written()


def test_for_each_that_is_not_staged_it_says_why() -> None:
    _, _, last = DOCUMENT.read_text().partition("\n## Not staged\n")
    why = [reason for row in re.findall(r"^\| (`.+`) \| [^|]+ \|$", last, re.MULTILINE) for reason in row.split(", ")]
    assert sorted(why) == sorted(f"`{reason}`" for reason, (_, tested) in documented().items() if tested == "message")


def test_the_numbers_are_those_of_the_tables() -> None:
    found = Counter(tested for _, tested in documented().values())
    counts = f"{found['cluster']} are `cluster`, {found['kubelet']} `kubelet` and {found['message']} `message`."
    assert f"Of the {found.total()} reasons, {counts}" in DOCUMENT.read_text()
