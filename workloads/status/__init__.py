"""What is shown of a workload and its run at this moment: desired run and observation in, phase, steps, explanation,
exposure and start estimate out. It writes nothing.
"""
