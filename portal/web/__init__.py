"""What surrounds every request: headers, ids, cookies, where it came from and where it may lead, and how a refusal
becomes a page, a fragment or JSON.
"""
