"""A team's secrets, stored encrypted: put, delete, list their names. No value is ever shown."""
