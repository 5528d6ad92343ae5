"""The history of a team, of a person and of the catalog. Reads events only."""
