"""Where a volume can be mounted, in words and for one node. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cluster.manifests.node_affinity import NodeTerms

# Ends of label names, whatever the storage driver: topology.kubernetes.io/zone, topology.ebs.csi.aws.com/zone.
_ENDS = {"node": ("/hostname", "/node", "/nodename"), "zone": ("/zone",), "region": ("/region",)}
_NAMED = 3
_COMPARED = {"Gt": int.__gt__, "Lt": int.__lt__}


@dataclass(frozen=True)
class VolumePlace:
    """`terms`: of the nodes that can mount the volume, as its PersistentVolume has them. None: it can be everywhere."""

    terms: NodeTerms = ()

    @property
    def keys(self) -> list[str]:
        """The node labels that decide."""
        return sorted({one["key"] for term in self.terms for one in term.get("matchExpressions", ())})

    @property
    def words(self) -> str:
        """For a sentence: "in zone b", "on node n1"."""
        said = [one for term in self.terms for part in term.values() for one in part]
        for kind, ends in _ENDS.items():
            values = {
                value
                for one in said
                if one["operator"] == "In" and (one["key"].endswith(ends) or (kind, one["key"]) == _BY_NAME)
                for value in one.get("values") or ()
            }
            if values:
                return f"{'on' if kind == 'node' else 'in'} {kind}{'s'[: len(values) > 1]} {_listed(sorted(values))}"
        return "on some of the nodes"

    def admits(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether it can be mounted on this node. As Kubernetes matches it: one of the terms, with all its parts."""
        return not self.terms or any(
            all(_matches(one, labels) for one in term.get("matchExpressions", ()))
            and all(_matches(one, {"metadata.name": name}) for one in term.get("matchFields", ()))
            for term in self.terms
        )


EVERYWHERE = VolumePlace()
_BY_NAME = ("node", "metadata.name")


def _listed(values: Sequence[str]) -> str:
    more = f" and {len(values) - _NAMED} more" if len(values) > _NAMED else ""
    return f"{', '.join(values[:_NAMED])}{more}"


def _matches(one: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    values: Sequence[str] = one.get("values") or []
    value, operator = labels.get(one["key"]), one["operator"]
    if operator in ("In", "Exists"):
        return value is not None and (operator == "Exists" or value in values)
    if operator in ("NotIn", "DoesNotExist"):
        return value is None or (operator == "NotIn" and value not in values)
    try:
        return value is not None and _COMPARED[operator](int(value), int(values[0]))
    except (ValueError, KeyError, IndexError):
        return False
