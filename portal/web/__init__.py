"""Code around every request: headers, request ids, cookies, client address and origin, safe redirects, and rendering of
a refusal as a page, a fragment or JSON.
"""
