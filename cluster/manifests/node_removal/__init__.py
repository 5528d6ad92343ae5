"""Nodes that a provider may reclaim, and the notices that a node is being removed. Pure."""
