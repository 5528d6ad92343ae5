"""The exports that can be read, each by a parser that makes a plan of it. Pure."""
