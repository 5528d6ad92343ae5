"""Reads of the mirror, as frozen values. A kind that is not listed yet is unknown, never empty. Nothing is written."""
