"""What every room of this app knows: the database's clock, mail links and page hints, shared form fields. No capability
of its own.
"""
