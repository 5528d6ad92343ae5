"""Pages that join apps. Edges and queries only."""
