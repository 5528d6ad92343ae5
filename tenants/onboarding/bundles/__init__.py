"""Bundles of quota that a new team can begin with; staff edit them."""
