"""Announcements as text for pages and the API."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from catalog.classes import life_cycle
from catalog.classes.queries import Migration
from tenants.announcements import queries
from tenants.models import Announcement


def banner(row: Mapping[str, Any]) -> dict[str, Any]:
    """`row`: of `queries.banner_rows`."""
    return {**row, "retiring": migrations(row["retiring"])}


def migrations(retiring: Collection[Mapping[str, Any]]) -> list[Migration]:
    """`retiring`: the JSON objects of a query. Without the notice, which the announcement says in its own words."""
    return [
        Migration(
            gpu_class=one["gpu_class"],
            name=one["name"],
            notice="",
            advice=life_cycle.migration_advice(
                name=one["name"],
                life_cycle=life_cycle.RETIRING,
                successor=one["successor_name"],
                runs_until=datetime.fromisoformat(one["runs_until"]) if one["runs_until"] else None,
                is_storage=one["is_storage"],
            ),
            successor=one["successor"],
            successor_name=one["successor_name"],
        )
        for one in retiring
    ]


def digest_of(rows: Collection[Mapping[str, Any]]) -> str:
    """Changes whenever the banners of a page do. `rows`: of `queries.banner_rows`."""
    text = json.dumps(list(rows), sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest() if rows else ""


def state_of(row: Announcement, *, at: datetime) -> str:
    """later, now, ended or withdrawn."""
    period: DateTimeTZRange = row.period
    if row.withdrawn_at is not None:
        return "withdrawn"
    if queries.is_over(row, at=at):
        return "ended"
    return "later" if period.lower > at else "now"
