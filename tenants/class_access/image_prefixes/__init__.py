"""Prefixes of image references below which a team may use any image. Images of the catalog are in the app catalog."""
