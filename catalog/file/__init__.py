"""The catalog as a YAML file: reads, writes and compares it; and its change log as sentences."""
