"""Which classes a team may see and use, the terms of a class, and in image_prefixes the images that a team may use.
Quota is in grants.
"""
