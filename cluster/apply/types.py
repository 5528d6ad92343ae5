"""The input of a reconciliation and its result."""

from __future__ import annotations

from dataclasses import dataclass

from cluster.manifests.metadata import Manifest

# Code of an object whose drift was repaired; `text` describes the drift.
REPAIRED = "repaired"
# Codes of an object that counts as refused: its drift is still there after a repair; sending it raised an unexpected
# exception.
NOT_REPAIRED = "not_repaired"
FAILED = "failed"
# Code of a Job or a volume claim that was created in a cluster that another one has replaced. It is not created again.
PREVIOUS_CLUSTER = "previous_cluster"

ObjectKey = tuple[str, str, str]


@dataclass(frozen=True)
class ConvergeResult:
    """The result of one pass. `sent` and `deleted` name objects as (kind, namespace, name)."""

    sent: tuple[ObjectKey, ...]
    deleted: tuple[ObjectKey, ...]
    refused: tuple[ObjectKey, ...]
    foreign: tuple[ObjectKey, ...]
    terminating: tuple[ObjectKey, ...]

    @property
    def is_settled(self) -> bool:
        """True if every wanted object exists or was refused: a refused object waits for a user, not for a retry."""
        return not self.terminating

    @property
    def is_all_applied(self) -> bool:
        return not (self.refused or self.foreign or self.terminating)


def object_key(manifest: Manifest) -> ObjectKey:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]


@dataclass(frozen=True)
class LeftClaims:
    """`clusters`: uids of the clusters in which they were made, as far as they are known. `restored`: how many of them
    there are in this cluster, too; None: unknown.
    """

    names: tuple[str, ...]
    clusters: tuple[str, ...]
    restored: int | None = None

    def here(self, claims: int | None) -> int | None:
        """How many of `claims`, which count these, are in this cluster; None: unknown."""
        if claims is None or self.restored is None:
            return None
        return claims - len(self.names) + self.restored

    @property
    def where(self) -> str:
        if not self.clusters:
            return "a previous cluster (its uid is not known)"
        return f"the previous cluster{'s' if len(self.clusters) > 1 else ''} with the uid {' and '.join(self.clusters)}"
