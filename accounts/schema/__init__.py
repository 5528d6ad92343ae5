"""What drf-spectacular cannot see by itself: the hooks and extensions that complete the contract."""
