"""What is shown of a workload and its run at this moment. From the desired run and the observation, these modules
compute phase, steps, explanation, exposure and start estimate. They write nothing.
"""
