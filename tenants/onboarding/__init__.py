"""How teams are created: by operators (teams), on request (team_requests), with a bundle of quota (bundles), as a trial
(trials), from the export of another system (imports).
"""
