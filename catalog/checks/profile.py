"""Standing checks of the site profile: keys that are ignored, and storage classes that do not exist. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.checks.types import CheckedSite, Finding, Severity, Subject


def site_profile(site: CheckedSite) -> Iterator[Finding]:
    for one in site.profile.problems:
        yield Finding("site_profile", Severity.ERROR, Subject("catalog"), one.sentence, one.way_out)


def storage_class_missing(site: CheckedSite) -> Iterator[Finding]:
    """The cluster accepts claims of a class that does not exist, and never provisions them."""
    for one in site.profile.storage_classes:
        if site.storage_classes is not None and one.name not in site.storage_classes:
            text = f"The site profile offers the storage class {one.name}, which the cluster does not have."
            way_out = "Create this StorageClass, or remove it from storage-classes in the site profile."
            yield Finding("storage_class_missing", Severity.ERROR, Subject("catalog"), text, way_out)
