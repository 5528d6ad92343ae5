"""Doors: what stays open. Event streams, waiting API calls, logs, and the gateway's questions; everything else is 404.

Bare ASGI: an idle stream costs a few KiB, no thread and no database connection.
"""

from __future__ import annotations

import os

import django

from desk.streaming.application import StreamingApplication

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup()


# noqa: E402
# noqa: E402
# noqa: E402


application = StreamingApplication()
