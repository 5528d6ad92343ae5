"""Single sign-on by OpenID Connect: what is asked of the issuer, what is believed, and whose account it is."""
