"""A workload and its runs as JSON: what the API of lifetime, runs and pages answers with."""
