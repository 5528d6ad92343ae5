"""What all teams together are promised of a class over time, against what the class can give."""
