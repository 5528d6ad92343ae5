"""When a certificate has to be renewed. Pure. `deploy/monitoring/rules/portal-alerts.yaml` has the same rule."""

from __future__ import annotations

from datetime import datetime, timedelta

# Certificates that renew themselves do so when a fifth to a third of their time is left.
RENEWED_BEFORE_SHARE = 10
RENEWED_BEFORE_AT_MOST = timedelta(days=30)


def is_to_renew(begins_at: datetime, ends_at: datetime, now: datetime) -> bool:
    return ends_at - now < min((ends_at - begins_at) / RENEWED_BEFORE_SHARE, RENEWED_BEFORE_AT_MOST)
