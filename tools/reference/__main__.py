"""`python -m tools.reference` writes the pages; with `--check` it only says which are stale."""

from __future__ import annotations

import argparse
import sys

from tools.reference.pages import stale, write


def main() -> int:
    """Write the pages, or compare them."""
    parser = argparse.ArgumentParser(prog="python -m tools.reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if stale")
    if not parser.parse_args().check:
        for name in write():
            print(f"written: docs/reference/{name}")
        return 0
    old = stale()
    for name in old:
        print(f"stale: docs/reference/{name}; run: make reference", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
