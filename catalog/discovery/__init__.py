"""Discovery: the hardware of nodes and device slices, and a proposed class for each kind. It creates no class."""
