"""Rights of the portal's identities, and the policies that admit or refuse their objects."""
