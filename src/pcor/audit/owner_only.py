"""What is for the owner only says so, and nothing else, where it is shown by accident."""

from __future__ import annotations


class OwnerOnly:
    """A private value; its repr shows nothing of it."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: PRIVATE, for the owner only>"
