"""The way into a notebook, its log and the live stream: who may, where it is, and the ASGI edges of the doors process."""
