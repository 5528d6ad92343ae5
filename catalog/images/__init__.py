"""Container images of the catalog: their rows, their references, and whether they fit a class."""
