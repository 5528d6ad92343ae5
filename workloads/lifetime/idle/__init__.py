"""Idle notebooks: their servers are asked, people are warned, and what nobody uses is stopped."""
