"""How calls of the API are read, bounded, repeated and answered, whatever they are about; no verb and no row of an app
but kept answers.
"""
