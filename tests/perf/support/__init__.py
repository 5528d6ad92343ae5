"""Shared by benchmarks: callers and viewers, request rates, rows to measure on."""
