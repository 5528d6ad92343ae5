"""The content of a bundle as one line of text. Pure."""

from __future__ import annotations

from portal.ui.text import plural
from tenants.onboarding.bundles.queries import BundleRow


def bundle_contents(bundle: BundleRow) -> str:
    """`2 GPUs of A100 SXM4 80GB, 4 slices of A100 SXM4 80GB · MIG 1g.10gb, for 90 days`."""
    lines = [f"{plural(line.units, line.unit)} of {line.name}" for line in bundle.lines]
    return f"{', '.join(lines)}, for {plural(bundle.days, 'day')}"
