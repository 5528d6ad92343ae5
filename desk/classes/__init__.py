"""One class in full, storage included, and what a person may do with it; classes and images in the API."""
