"""Who asks, and through which door: the actor, how a request becomes one, and the checks that every app shares."""
