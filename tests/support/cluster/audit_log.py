"""The audit log of an API server: which requests it received from the portal's identities."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

USER = "system:serviceaccount:gpu-portal:{}"
READS = frozenset({"get", "list", "watch"})


@dataclass(frozen=True)
class AuditLog:
    """`flags`: for the API server that writes it."""

    home: Path

    @property
    def path(self) -> Path:
        return self.home / "audit.log"

    @property
    def flags(self) -> dict[str, object]:
        return {
            "audit-log-path": self.path,
            "audit-policy-file": self.home / "audit-policy.yaml",
            # Every event is in the file when its request is answered.
            "audit-log-mode": "blocking-strict",
        }

    def write_policy(self, *identities: str) -> None:
        rules = [
            {"level": "Metadata", "users": [USER.format(one) for one in identities]},
            {"level": "None"},
        ]
        policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}
        (self.home / "audit-policy.yaml").write_text(yaml.safe_dump(policy))

    def events(self, *, after: int = 0) -> list[dict[str, Any]]:
        """Each request once or more, in the order of the file; without the first `after` lines."""
        return [json.loads(line) for line in self.path.read_text().splitlines()[after:]]

    def writes(self, *, after: int = 0) -> list[tuple[str, str, str]]:
        """Identity, verb and address of everything that is no read, dry runs and reviews of rights included."""
        return [
            (one["user"]["username"].rpartition(":")[2], one["verb"], one["requestURI"])
            for one in self.events(after=after)
            if one["verb"] not in READS
        ]

    def readers(self, *, after: int = 0) -> set[str]:
        return {one["user"]["username"].rpartition(":")[2] for one in self.events(after=after) if one["verb"] in READS}
