"""`gpu`: the portal's API as commands. It knows nothing of the portal but its answers."""

__version__ = "0.1.0"
