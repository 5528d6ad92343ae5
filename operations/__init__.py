"""What operators do to nodes: maintenance. The order of the rooms is in `.importlinter`."""
