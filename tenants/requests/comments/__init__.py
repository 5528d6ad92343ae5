"""What is said about a request."""
