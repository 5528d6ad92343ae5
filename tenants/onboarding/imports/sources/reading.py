"""The parsers by the name of their system, and the names that are given for names of theirs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from portal.core.errors import refuse
from tenants.onboarding.imports.sources import coldfront, jupyterhub, team_csv, waldur
from tenants.onboarding.imports.types import ImportOptions, ImportPlan

SOURCES: dict[str, Callable[[bytes, ImportOptions], ImportPlan]] = {
    "csv": team_csv.read,
    "coldfront": coldfront.read,
    "waldur": waldur.read,
    "jupyterhub": jupyterhub.read,
}


def name_pairs(texts: Iterable[str], field: str) -> dict[str, str]:
    """Of THEIRS=OURS. Their name may contain "=", ours does not. Raises Refused: bad_line."""
    found = {}
    for text in texts:
        theirs, equals, ours = text.rpartition("=")
        if not equals or not theirs.strip():
            raise refuse("bad_line", f"'{text[:80]}' is not valid. Write THEIRS=OURS.", field=field)
        found[theirs.strip()] = ours.strip()
    return found
