"""The reference, written from the code: `python -m tools.reference`.

Public: everything here. What the code writes is a function of the code alone: no clock, no path, no
width of a terminal and no version of a machine enters, so the same code gives the same pages
everywhere, and a test can compare them with what is committed.
"""
