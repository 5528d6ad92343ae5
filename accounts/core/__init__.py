"""Who asks, and through which door: the actor, how a request becomes one, and the refusals that every app asks for."""
