"""The project as an app: template tags and the sweep task live here."""

from django.apps import AppConfig


class PortalConfig(AppConfig):
    name = "portal"
    verbose_name = "GPU portal"
