"""Bounds and sentences that columns and policies share. Leaf: workloads.models imports it."""

from __future__ import annotations

GROUP_LIMIT = 100

STILL_RUNNING = "The last run has not ended. Stop it first."
