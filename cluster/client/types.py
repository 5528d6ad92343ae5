"""An answer of the API server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ApiObject:
    """An object as the API server returned it, with the texts of its `Warning:` headers."""

    body: dict[str, Any]
    warnings: list[str] = field(default_factory=list)

    @property
    def uid(self) -> str:
        return str(self.body.get("metadata", {}).get("uid", ""))

    @property
    def resource_version(self) -> str:
        return str(self.body.get("metadata", {}).get("resourceVersion", ""))

    @property
    def labels(self) -> dict[str, str]:
        return self.body.get("metadata", {}).get("labels") or {}

    @property
    def managed_fields(self) -> list[dict[str, Any]]:
        return self.body.get("metadata", {}).get("managedFields") or []

    @property
    def is_terminating(self) -> bool:
        return "deletionTimestamp" in self.body.get("metadata", {})
