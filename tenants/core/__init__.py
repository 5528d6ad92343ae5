"""What every room of this app uses: the database's clock, links in mails, page hints, shared form fields, the team of
an address.
"""
