"""Teams, people and quota of another system: read from its export as a plan, tried, and carried out by the actions of
the other rooms. Nothing that exists is changed; passwords and tokens are never read.
"""
