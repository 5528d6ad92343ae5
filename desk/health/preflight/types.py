"""What was read of a cluster, and what a check found. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Raw = dict[str, Any]


class Level(StrEnum):
    """`WARN` also stands for what cannot be known from the cluster's objects."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class PreflightFinding:
    """One line. `do`: the remedy, empty if it passed."""

    check: str
    level: Level
    sentence: str
    do: str = ""


class TrialResult(StrEnum):
    ACCEPTED = "accepted"
    REFUSED = "refused"
    # No answer about the object: the kubeconfig may not create it, or its kind is not served.
    UNTRIED = "untried"


@dataclass(frozen=True)
class Trial:
    """An object like those that the portal creates, sent as a dry run. `answer`: as it would be stored."""

    sent: Raw
    result: TrialResult
    text: str = ""
    answer: Raw | None = None

    @property
    def kind(self) -> str:
        return str(self.sent["kind"])


@dataclass(frozen=True)
class ClusterFacts:
    """`groups`: API group → versions that are served. `lists`: plural → objects, absent if its API is
    not served. `unread`: plural → why it could not be listed. `kueue_settings`: the file of Kueue's
    manager, None if it was not found.
    """

    version: str
    groups: Mapping[str, tuple[str, ...]]
    lists: Mapping[str, tuple[Raw, ...]]
    unread: Mapping[str, str] = field(default_factory=dict)
    kueue_settings: str | None = None
    missing_rights: tuple[str, ...] = ()
    trials: tuple[Trial, ...] = ()

    def all(self, plural: str) -> tuple[Raw, ...]:
        return self.lists.get(plural, ())

    def named(self, plural: str, name: str) -> Raw | None:
        return next((one for one in self.all(plural) if name_of(one) == name), None)


def name_of(one: Raw) -> str:
    return str(one["metadata"]["name"])


def namespace_of(one: Raw) -> str:
    return str(one["metadata"].get("namespace", ""))


def labels_of(one: Raw) -> dict[str, str]:
    return one["metadata"].get("labels") or {}


def passed(check: str, sentence: str) -> PreflightFinding:
    return PreflightFinding(check, Level.PASS, sentence)


def warning(check: str, sentence: str, do: str) -> PreflightFinding:
    return PreflightFinding(check, Level.WARN, sentence, do)


def failure(check: str, sentence: str, do: str) -> PreflightFinding:
    return PreflightFinding(check, Level.FAIL, sentence, do)


def listed(names: list[str] | tuple[str, ...], *, limit: int = 5) -> str:
    """Names for a sentence; further ones are counted."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
