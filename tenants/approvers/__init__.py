"""Who decides requests about which classes; who stands in for an approver is in delegation. The role itself is the
account's, decisions are in requests.
"""
