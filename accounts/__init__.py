"""Who acts: users, actors, tokens, events, deliveries; API authentication, throttles, paging."""
