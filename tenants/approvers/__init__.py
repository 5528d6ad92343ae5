"""Who decides requests for which classes; delegates of approvers are in delegation. The role itself belongs to the
account, decisions are in requests.
"""
