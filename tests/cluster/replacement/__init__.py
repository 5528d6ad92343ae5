"""Tests of cluster/replacement: another cluster than the one of the rows is neither read nor written."""
