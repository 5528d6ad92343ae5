"""Annotations that say who plays a node or a pod."""

from __future__ import annotations

# Of a node: "fake" where kwok simulates it.
SIMULATED = "kwok.x-k8s.io/node"
# Of a pod: "true" where the scripted kubelet alone handles it.
SCRIPTED = "devcluster/scripted"
