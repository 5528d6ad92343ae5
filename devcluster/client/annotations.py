"""Annotations that name what simulates a node or a pod."""

from __future__ import annotations

# On a node: "fake" if kwok simulates it.
SIMULATED = "kwok.x-k8s.io/node"
# On a pod: "true" if only the scripted kubelet handles it.
SCRIPTED = "devcluster/scripted"
