"""Pages and REST API under WSGI (gunicorn). Holds no cluster credentials."""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
application = get_wsgi_application()
# All pages' modules: otherwise the first visitor of each worker waits for them, and each worker has its own.
_ = get_resolver().url_patterns

# What is loaded now stays: looked through at every full collection it would hold up requests, and forked processes
# would stop sharing it.
gc.collect()
gc.freeze()
