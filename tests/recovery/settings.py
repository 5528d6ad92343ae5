"""The portal's settings with shorter intervals: what takes a minute in production takes seconds here."""

from portal.settings import *  # noqa: F403

KUBE_TIMEOUT_S = 2
RECONCILE_BUDGET_S = 3
TASK_LIMIT_S = CELERY_TASK_TIME_LIMIT = 9
LEASE_S = 10
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "portal.sweep", "schedule": 2.0, "options": {"queue": "background", "expires": 10}}
}
