"""The pictures of README and of the documentation site, for light and dark pages.

Nothing private: tables are made up, and the pictures say so. ``python -m tools.pictures`` draws
them to docs/pictures; a test compares what is committed there with what the code draws. The
screenshots of the service's page are taken by its tests: docs/how-to/page.md says how.
"""

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
