"""`gpu`: the portal's API as commands. It knows only the answers of the API."""

__version__ = "0.1.0"
