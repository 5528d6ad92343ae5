"""When a run has to give its units back by a rule: its time limit, an idle notebook, a person who left the team."""
