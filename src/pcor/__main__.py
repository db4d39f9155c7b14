"""``python -m pcor``: the command line, where the script is not on the path."""

from pcor.cli import run

if __name__ == "__main__":
    run()
