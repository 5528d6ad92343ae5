"""Which smaller quota the measured use of a team would fit, and how busy the GPUs were that it held."""
