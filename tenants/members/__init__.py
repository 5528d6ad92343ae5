"""Who belongs to a team and with which role. How people come to it is in invitations, what groups of the issuer give in
group_sync, tokens of the team in tokens.
"""
