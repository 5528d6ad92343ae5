"""What every package of this app uses: the database's clock, links in mails, page hints, shared form fields, and the
team that a URL names.
"""
