"""Pages and REST API under WSGI (gunicorn). Holds no cluster credentials."""

import gc
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
application = get_wsgi_application()

# What is loaded now stays: looked through at every full collection it would hold up requests, and forked processes
# would stop sharing it.
gc.collect()
gc.freeze()
