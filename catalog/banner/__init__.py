"""The banner: one message of the staff to everybody, shown on every page until it expires."""
