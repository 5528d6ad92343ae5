from django.apps import AppConfig


class WorkloadsConfig(AppConfig):
    name = "workloads"
    verbose_name = "Workloads"

    def ready(self) -> None:
        from catalog.classes.commitments import register_runs
        from tenants.announcements.queries import register_teams_with_workloads
        from tenants.lifecycle.trial_expiry.queries import register_team_runs
        from workloads.runs.queries import count_unfinished, team_runs, teams_with_workloads

        register_teams_with_workloads(teams_with_workloads)
        register_runs(count_unfinished)
        register_team_runs(team_runs)
