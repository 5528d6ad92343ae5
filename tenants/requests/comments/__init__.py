"""Comments on a request."""
