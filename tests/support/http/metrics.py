"""Reads metrics as Prometheus does."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from portal.ops import metrics


def figures(text: bytes | None = None) -> dict[tuple[str, ...], float]:
    """(name, label values…) → value."""
    families = text_string_to_metric_families((text or metrics.exposition()).decode())
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }
