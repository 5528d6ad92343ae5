"""The process that holds connections open (doors): its routes, and which app answers them."""
