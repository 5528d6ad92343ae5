"""The history of a team, of a user and of the catalog. It only reads events."""
