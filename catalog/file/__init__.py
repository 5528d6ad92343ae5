"""The catalog as a YAML file: read, written and compared; and its change log as sentences."""
