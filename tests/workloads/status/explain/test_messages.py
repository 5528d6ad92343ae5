"""Each message of a cluster has the code of its cause, names who can act, and a step that helps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.workloads.cases.cluster_objects import NOW, WISH
from tests.workloads.cases.problems import ended
from tests.workloads.status.explain.messages import DEVICES, MESSAGES, OPERATORS, Message
from workloads.status.explain.types import Who, who_acts
from workloads.status.phase import status_of
from workloads.status.types import Phase, Status


def told(message: Message) -> Status:
    return status_of(replace(WISH, image="registry.example.org/minimal:1"), message.seen, now=NOW)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda one: f"{one.reason}: {one.text[-60:]}")
def test_a_message_has_its_cause_who_acts_and_a_step(message: Message) -> None:
    found = told(message)
    assert found.reason == message.reason, found
    assert found.explained is not None
    assert message.text in found.explained.raw
    assert message.step in found.explained.remedy
    assert message.says in found.sentence
    assert who_acts(found.reason) == message.who
    assert ("change" in found.actions) <= (message.who != OPERATORS or found.reason in MAY_CHANGE)


# An operator acts, and another image or volume helps in the meantime.
MAY_CHANGE = {"registry_untrusted", "gpu_fault", "gpu_not_visible", "node_gpu_error"}


@pytest.mark.parametrize("message", DEVICES, ids=lambda one: one.text[-60:])
def test_a_fault_of_the_node_is_never_the_fault_of_the_command(message: Message) -> None:
    found = told(message)
    assert found.explained is not None
    assert "command" not in found.sentence + found.explained.remedy


def test_more_units_than_a_share_has_never_start() -> None:
    found = told(next(one for one in DEVICES if one.reason == "share_limit"))
    assert found.phase is Phase.BLOCKED
    assert found.facts == {"node": "a100-1", "asked": 2, "limit": 1}
    assert "automatically" not in found.sentence


@pytest.mark.parametrize(
    ("resource", "step"),
    [
        ("nvidia.com/mig-1g.10gb", "a larger slice or a whole GPU. More slices of this size give one process no more"),
        ("nvidia.com/gpu.shared", "a GPU of its own or more GPU memory. More shares give one process no more memory"),
        ("nvidia.com/mig-1g.10gb.shared", "a larger slice or a whole GPU"),
        ("nvidia.com/gpu", "More units help only if each is a whole GPU and the program uses several GPUs"),
    ],
)
def test_more_units_are_no_step_if_a_unit_is_a_part_of_a_gpu(resource: str, step: str) -> None:
    seen = ended(1, message="CUDA out of memory.", requests={resource: 1})
    found = status_of(WISH, seen, now=NOW)
    assert found.explained is not None
    assert step in found.explained.remedy
    assert "request more units" not in found.explained.remedy


def test_every_reason_of_the_table_has_someone_who_acts() -> None:
    assert all(who_acts(message.reason) is not Who.UNKNOWN for message in MESSAGES)
