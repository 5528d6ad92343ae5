"""Pages and API about namespaces that existed before the portal."""
