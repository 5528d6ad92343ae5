"""The log of catalog changes."""
