"""A team's sealed secrets: put, delete, list their names. No value is ever shown."""
