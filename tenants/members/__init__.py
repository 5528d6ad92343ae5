"""Who belongs to a team and with which role. How people join is in invitations, what groups of the issuer give in
group_sync, API tokens of the team in tokens.
"""
