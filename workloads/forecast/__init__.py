"""What a launch would meet now on each class, and how well start estimates came true. The estimate of a
single run is in `status`.
"""
