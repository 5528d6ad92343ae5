from django.apps import AppConfig


class DeskConfig(AppConfig):
    name = "desk"
    verbose_name = "Desk"

    def ready(self) -> None:
        from desk.health.cluster_metrics import cluster_families
        from desk.health.metrics import families
        from portal.ops.metrics import register_collector

        register_collector(cluster_families)
        register_collector(families)
