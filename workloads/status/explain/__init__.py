"""Turns messages of Kueue, the API server, the scheduler and the kubelet into one plain sentence with numbers.

Pure: texts in, Explanation out. An unknown text is shown unchanged, because a wrong explanation is worse than a raw
message.
"""
