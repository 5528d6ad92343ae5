"""Who may have how much: tenants, namespaces, requests, grants, plans."""
