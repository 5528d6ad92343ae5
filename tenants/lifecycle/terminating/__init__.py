"""Namespaces that were deleted and do not go, and what blocks them."""
