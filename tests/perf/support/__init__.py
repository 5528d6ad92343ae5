"""What benchmarks share: databases and servers of their own, callers and viewers, pace."""
