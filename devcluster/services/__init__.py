"""The services that the portal needs, as one object (Stack), and the portal's own processes (Portal)."""
