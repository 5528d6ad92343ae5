"""The catalog as a YAML file: read, written, compared; and its change log in words."""
