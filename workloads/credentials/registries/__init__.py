"""A team's logins to image registries, and the page of its own images and allowed prefixes."""
