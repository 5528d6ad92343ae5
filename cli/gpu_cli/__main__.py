"""python -m gpu_cli"""

from gpu_cli.main import run

if __name__ == "__main__":
    run()
