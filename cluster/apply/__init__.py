"""Makes the cluster hold a row's manifests, tries that as a dry run, and says the status of each applied object."""
