"""Engines: what holds rows that are not read into memory, and answers SQL about them.

Private: the rows, and every answer.
"""
