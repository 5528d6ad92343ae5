"""The outlook for a launch on each class now, and the accuracy of start estimates. The estimate of a single run is in
`status`.
"""
