"""Annotations that say which program simulates a node or a pod."""

from __future__ import annotations

# On a node: "fake" if kwok simulates it; any other value if it does not, LOST if it does not respond.
SIMULATED, LOST = "kwok.x-k8s.io/node", "lost"
# On a pod: "true" if only the scripted kubelet handles it.
SCRIPTED = "devcluster/scripted"
