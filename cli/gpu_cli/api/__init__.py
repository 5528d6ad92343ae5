"""The portal's API over HTTP: address and token, calls, errors and their exit codes. No console."""
