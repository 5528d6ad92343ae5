"""Pages and addresses that join several rooms: the page of a team, the start page of somebody without one, a team's
grants.
"""
