"""The command line: parse, call, print. Nothing is computed here."""

from pcor.cli.app import app, run

__all__ = ["app", "run"]
