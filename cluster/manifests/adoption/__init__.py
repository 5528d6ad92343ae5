"""Namespaces that existed before the portal."""
