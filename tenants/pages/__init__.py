"""Pages and URLs that combine several packages: the page of a team, the start page of a user without a team, a team's
grants.
"""
