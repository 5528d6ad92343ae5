"""Single sign-on by OpenID Connect: requests to the issuer, validation of its responses, and mapping to accounts."""
