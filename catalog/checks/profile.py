"""Standing check of the site profile: keys that are ignored. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.checks.types import CheckedSite, Finding, Severity, Subject


def site_profile(site: CheckedSite) -> Iterator[Finding]:
    for one in site.profile.problems:
        yield Finding("site_profile", Severity.ERROR, Subject("catalog"), one.sentence, one.way_out)
