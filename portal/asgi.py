"""The ASGI application of the process that holds connections open (desk/streaming)."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup()

from desk.streaming.application import StreamingApplication  # noqa: E402 - Django has to be set up first

application = StreamingApplication()
