"""Who decides requests about which classes; who stands in for an approver is in delegation. The role itself belongs to
the account, decisions are in requests.
"""
