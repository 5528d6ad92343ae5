"""Who acts: people, actors, tokens, events, deliveries; sign-in, and the base of the REST API."""
