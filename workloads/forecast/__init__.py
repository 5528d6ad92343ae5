"""The current outlook for a launch on each class, and the accuracy of start estimates. The estimate of a single run is
in `status`.
"""
