from django.apps import AppConfig


class DeskConfig(AppConfig):
    name = "desk"
    verbose_name = "Desk"

    def ready(self) -> None:
        from desk.metrics import families
        from portal.metrics import also_show

        also_show(families)
