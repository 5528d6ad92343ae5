"""The process that holds connections open: its routes, and which app answers them."""
