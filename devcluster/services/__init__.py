"""What the portal needs around it, as one object (Stack), and the portal's own processes."""
