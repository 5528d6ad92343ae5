"""Hooks and extensions that add to the contract what drf-spectacular cannot find by itself."""
