"""The order in which the services of a compose file start, and what each waits for. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import TopologicalSorter
from typing import Any

HEALTHY, COMPLETED = "service_healthy", "service_completed_successfully"


def start_order(services: Mapping[str, Any]) -> list[str]:
    """Returns the names so that every service comes after those that it depends on."""
    return list(TopologicalSorter({name: awaited(body) for name, body in services.items()}).static_order())


def awaited(service: Mapping[str, Any]) -> dict[str, str]:
    """Returns the condition of each service that this one waits for."""
    return {name: one["condition"] for name, one in service.get("depends_on", {}).items()}


def stays_up(service: Mapping[str, Any]) -> bool:
    return service.get("restart") != "no"
