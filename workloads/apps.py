from django.apps import AppConfig


class WorkloadsConfig(AppConfig):
    name = "workloads"
    verbose_name = "Workloads"

    def ready(self) -> None:
        from catalog.classes.commitments import register_runs
        from workloads.runs.queries import count_unfinished

        register_runs(count_unfinished)
