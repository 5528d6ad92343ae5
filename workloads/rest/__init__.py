"""A workload and its runs as JSON: the response body of the APIs of lifetime, runs and pages."""
