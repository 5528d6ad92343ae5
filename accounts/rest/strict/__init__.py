"""Bodies, forms and query strings in which an unknown field is refused."""
