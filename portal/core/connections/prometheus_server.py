"""The Prometheus that is read for GPU metrics, from settings and validated at start. This module imports no app."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

# What is read of a device, and in which unit (usage/telemetry/promql.py).
FIELDS = ("utilisation", "engine", "memory_used", "memory_free", "power")
METRIC_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@dataclass(frozen=True)
class PrometheusServer:
    """`url`: up to `/api/v1`, without a slash at its end. `metrics`: field → the site's own name of the metric, which
    replaces the known names.
    """

    url: str
    token: str = field(default="", repr=False)
    org: str = ""
    basic: tuple[str, str] | None = field(default=None, repr=False)
    ca_file: str = ""
    metrics: Mapping[str, str] = field(default_factory=dict)

    @property
    def headers(self) -> dict[str, str]:
        bearer = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return bearer | ({"X-Scope-OrgID": self.org} if self.org else {})

    @property
    def secrets(self) -> tuple[str, ...]:
        """For the filter of logs."""
        return tuple(filter(None, (self.token, self.basic[1] if self.basic else "")))


def prometheus_server(
    *, url: str, token: str, basic: tuple[str, str], org: str, ca_file: str, metrics: Mapping[str, str]
) -> PrometheusServer | None:
    """Returns None without a URL. `basic`: user and password, or two empty texts. `org`: the tenant of Mimir or Cortex.
    Raises ImproperlyConfigured with the name of the variable.
    """
    if not url:
        return None
    if not _is_address(url):
        raise ImproperlyConfigured("PROMETHEUS_URL must be an http or https URL without user, query and fragment.")
    if token and any(basic):
        raise ImproperlyConfigured("Set PROMETHEUS_TOKEN_FILE, or PROMETHEUS_USER and PROMETHEUS_PASSWORD_FILE.")
    if any(basic) and not all(basic):
        raise ImproperlyConfigured("PROMETHEUS_USER requires PROMETHEUS_PASSWORD_FILE, and the other way round.")
    if unknown := sorted(set(metrics) - set(FIELDS)):
        raise ImproperlyConfigured(f"PROMETHEUS_METRICS names {', '.join(unknown)}; it knows {', '.join(FIELDS)}.")
    if bad := [name for name in metrics.values() if not METRIC_NAME.fullmatch(name)]:
        raise ImproperlyConfigured(f"PROMETHEUS_METRICS: {bad[0]!r} is no name of a metric.")
    return PrometheusServer(url.rstrip("/"), token, org, basic if all(basic) else None, ca_file, dict(metrics))


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        return False
    safe = url.isprintable() and " " not in url and parts.username is None
    return safe and parts.scheme in ("http", "https") and bool(host) and not parts.query and not parts.fragment
