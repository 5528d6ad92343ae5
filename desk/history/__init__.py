"""What happened: to a team, to a person, to the catalog. Reads events only."""
