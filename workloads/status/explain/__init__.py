"""Messages of Kueue, the API server, the scheduler and the kubelet, as one plain sentence with numbers.

Pure: texts in, Explanation out. A text that is not known is shown unchanged, because a wrong explanation is worse than
a raw one.
"""
