"""The actor of a request (user and channel), how it is made from the request, and the checks that all apps share."""
