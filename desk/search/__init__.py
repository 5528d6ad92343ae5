"""The search over teams, classes, workloads, people, pages and documentation, as page and in the API."""
