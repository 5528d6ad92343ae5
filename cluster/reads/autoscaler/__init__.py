"""Karpenter's NodePools and NodeClaims as the mirror shows them. Other autoscalers are not read."""
