"""What pages are drawn with: words, the vocabulary of statuses, the geometry of bars and curves, and the styleguide; no
request is answered here but the styleguide's.
"""
