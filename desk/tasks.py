"""Every ten minutes: deletes rows whose time is over."""

from pathlib import Path

from celery import shared_task
from django.conf import settings

from desk.retention import deletion

# Below the limit of a task, with time for the last bundle.
WITHIN_S = 7.0


@shared_task(name="desk.retention.delete", ignore_result=True)
def delete_expired_rows() -> None:
    folder = Path(settings.RETENTION_ARCHIVE) if settings.RETENTION_ARCHIVE else None
    deletion.delete_expired(folder, within_s=WITHIN_S)
