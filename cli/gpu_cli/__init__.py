"""The command `gpu`: makes calls of the portal's API from a terminal. It shares no code with the portal."""

__version__ = "0.1.0"
