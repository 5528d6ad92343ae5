"""What is allocated of a class to all teams over time, against its allocation limit."""
