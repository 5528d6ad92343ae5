"""Raw Kubernetes JSON to the small record that a mirror row keeps, one module a group of kinds. Pure."""
