"""numpy, imported when it is first used.

A schema, a plan and a client describe what will be done and touch no array; where nothing else is
installed (``pcor-client``) they work without numpy, and elsewhere they begin sooner. Modules that
they import take ``np`` from here, and write type aliases as text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["ArrayLike", "NDArray", "np"]

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray
else:
    ArrayLike = NDArray = Any

    class _Numpy:
        """Stands for numpy; what was looked up once is kept as an attribute."""

        def __getattr__(self, name: str) -> Any:
            import numpy  # noqa: ICN001 (the short name stands for this object here)

            found = getattr(numpy, name)
            setattr(self, name, found)
            return found

    np = _Numpy()
