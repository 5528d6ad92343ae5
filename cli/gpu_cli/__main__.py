"""`python -m gpu_cli` does the same as the command `gpu`."""

from gpu_cli.main import run

if __name__ == "__main__":
    run()
