"""The page of one class, storage included, and what a user may do with it; classes and images in the API."""
