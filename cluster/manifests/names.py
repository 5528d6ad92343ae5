"""Names of objects: always valid, always the same for the same input, never one name for two inputs.

A valid name is kept as it is; any other is slugged, truncated and ends in `--<hash of the original>`, which a valid
input cannot contain.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

LABEL_LIMIT = 63
_VALID = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")

LOCAL_QUEUE = "gpu-portal"
TOPOLOGY = "gpu-portal"
QUOTA = "gpu-portal"
PRIORITY_CLASS = "gpu-portal"
# Shipped in deploy/base/queues.yaml: a flavor without a topology, for a resource that nobody requests.
PLAIN_FLAVOR = "gpu-portal-plain"
PLAIN_RESOURCE = "gpu-portal/none"
# Names of cohorts, which deploy/base/fence-worker.yaml limits to these: that of all queues is this one or gpu-portal-…
COHORT = "gpu-portal"
TENANT_ROLE = "gpu-portal-tenant"
LOGS_ROLE = "gpu-portal-logs"


def is_dns_label(text: str, *, limit: int = LABEL_LIMIT) -> bool:
    return len(text) <= limit and "--" not in text and bool(_VALID.fullmatch(text))


def dns_label(text: str, *, limit: int = LABEL_LIMIT) -> str:
    """A valid DNS label for any text."""
    if is_dns_label(text, limit=limit):
        return text
    slug = re.sub(r"-+", "-", re.sub(r"[^a-z0-9]+", "-", text.lower())).strip("-") or "x"
    return f"{slug[: limit - 10].strip('-')}--{short_hash(text)}"


def short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def is_cohort_name(text: str) -> bool:
    """Whether the worker may put queues into a cohort of that name."""
    return bool(re.fullmatch(rf"{COHORT}(-[a-z0-9]+)*", text)) and len(text) <= LABEL_LIMIT


def own_cohort(namespace: str) -> str:
    """The cohort of one namespace's queue alone (`namespace.grace_cohort`). No other cohort may have such a name."""
    return f"{COHORT}--{namespace}"


def run_name(workload: str, number: int) -> str:
    """Name of a Run's Job, Secret and claim template. Workload names have at most 40 characters."""
    return dns_label(f"{workload}-{number}")


def image_pull_secret_name(run: str) -> str:
    """The Secret with which that run's pod signs in to its registry. No run name ends like this."""
    return f"{run}-pull"


def flavor_name(slug: str, node_labels: Mapping[str, str]) -> str:
    """A changed selector gives a new flavor name: `nodeLabels` of a ResourceFlavor with a topology are immutable."""
    return f"{slug}-{short_hash(json.dumps(dict(node_labels), sort_keys=True))}"
