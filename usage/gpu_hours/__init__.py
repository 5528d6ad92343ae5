"""GPU-hours and their cost, of a team's members and of a month."""
