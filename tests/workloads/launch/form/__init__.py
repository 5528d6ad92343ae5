"""The launch form and the preview of what it would create."""
