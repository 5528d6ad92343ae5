"""Checks of the values of a class before they are stored: every problem with its field. Pure."""
