"""Everything that can be wrong with a class as typed, each with its field. Pure."""
