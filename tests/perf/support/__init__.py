"""What benchmarks share: callers and viewers, pace, rows to measure on."""
