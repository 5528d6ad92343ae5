"""The portal as docker-compose.yml runs it, with podman in the network of the real node. Needs root."""
