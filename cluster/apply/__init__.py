"""Make the cluster hold a row's manifests, try it as a dry run, and tell the status of each applied object."""
