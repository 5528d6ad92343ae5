"""Helpers of pages: texts, the vocabulary of statuses, the geometry of bars and curves, and the styleguide."""
