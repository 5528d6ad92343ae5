"""The portal's API over HTTP: address and token, calls, what goes wrong and with which exit code. No console."""
