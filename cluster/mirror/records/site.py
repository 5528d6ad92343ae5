"""The record of the site profile, the only ConfigMap that is read. Pure."""

from __future__ import annotations

from cluster.mirror.records.types import Raw, RecordContent, record_only, truncated

VALUE_LIMIT = 4000


def site_record(raw: Raw) -> RecordContent:
    """data: {key: text}."""
    data = raw.get("data") or {}
    return record_only(data={truncated(key, 253): truncated(text, VALUE_LIMIT) for key, text in sorted(data.items())})
