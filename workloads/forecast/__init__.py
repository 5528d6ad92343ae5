"""What a launch would meet now on each class, and how well start estimates came true. A single run's estimate is in
`status`.
"""
