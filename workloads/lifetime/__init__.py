"""When a rule stops a run: its time limit, an idle notebook, a user who left the team."""
