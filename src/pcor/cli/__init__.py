"""The command line: parse, call, print. Nothing is computed here.

All that is loaded before ``run`` watches for Ctrl-C is this module, so it imports nothing itself.
"""

TYPE_CHECKING = False  # as type checkers know it
if TYPE_CHECKING:
    from pcor.cli.commands import app

__all__ = ["app", "run"]


def run() -> None:
    """Run the command line; Ctrl-C before a command has begun ends it without a traceback."""
    try:
        from pcor.cli import interrupts

        interrupts.leave_at_once()
        from pcor.cli.commands import app
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    app()


def __getattr__(name: str) -> object:
    """Import the application when it is first asked for."""
    if name == "app":
        from pcor.cli.commands import app

        return app
    raise AttributeError(f"module 'pcor.cli' has no attribute {name!r}")
