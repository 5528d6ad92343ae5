"""Pages and addresses that join several rooms: the team, the start of somebody without one, the grants of a team."""
