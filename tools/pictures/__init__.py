"""The pictures of README and of the documentation site, drawn by code, for light and dark pages.

Nothing private: tables are made up, and the pictures say so. ``python -m tools.pictures`` draws
them to docs/pictures; a test compares what is committed there with what the code draws.
"""
