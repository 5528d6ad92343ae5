"""Benchmarks of many people at once, in a cluster with a whole portal."""
