"""A node that is cordoned: by whom and since when, as the node says it. Pure.

Nothing is guessed: the manager is what the client calls itself, and a node that does not say it is cordoned by
somebody unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.ui.text import date_and_time

# Set by the maintenance of the portal before it cordons a node.
MAINTENANCE_TAINT = "gpu-portal/maintenance"


@dataclass(frozen=True, slots=True)
class Cordon:
    """`manager`: the field manager that set it, "" if unknown. `at` None: unknown. `is_maintenance`: the portal holds
    the node itself.
    """

    manager: str
    at: datetime | None
    is_maintenance: bool = False

    @property
    def how(self) -> str:
        """For example "cordoned with kubectl since 21 Nov, 14:02"."""
        known = f"cordoned{self._who}{f' since {date_and_time(self.at)}' if self.at else ''}"
        unknown = [*(() if self._who else ("by whom",)), *(() if self.at else ("since when",))]
        return f"{known}, {' and '.join(unknown)} is unknown" if unknown else known

    @property
    def by(self) -> str:
        return f"cordoned{self._who}" if self._who else "cordoned, by whom is unknown"

    @property
    def _who(self) -> str:
        if self.is_maintenance:
            return " for maintenance"
        is_kubectl = self.manager == "kubectl" or self.manager.startswith("kubectl-")
        return " with kubectl" if is_kubectl else f" by {self.manager}" if self.manager else ""


def cordon_of(*, schedulable: bool, record: Mapping[str, Any]) -> Cordon | None:
    """Reads a node as the mirror has it; None if it is not cordoned."""
    if schedulable:
        return None
    found = record.get("cordon") or {}
    is_maintenance = any(taint["key"] == MAINTENANCE_TAINT for taint in record["taints"])
    at = datetime.fromisoformat(found["at"]) if found.get("at") else None
    return Cordon(found.get("manager", ""), at, is_maintenance)


def cordon_sentence(node: str, found: Cordon) -> str:
    if found.at is None:
        return f"Node {node} takes no new workloads: {found.how}."
    return f"Node {node} takes no new workloads since {date_and_time(found.at)} ({found.by})."
