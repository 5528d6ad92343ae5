"""How calls of the API are parsed, limited, repeated and answered, whatever they are about. This room knows no verb,
and no row but kept answers.
"""
