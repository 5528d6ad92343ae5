"""Discovery: which hardware nodes and device slices have, and which class each kind would make. It creates no class."""
