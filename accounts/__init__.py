"""Users, actors, tokens, events and deliveries; sign-in, and the base of the REST API."""
