"""Bodies, forms and queries in which nothing unknown is ignored."""
