"""Random draws with stated chances: from a list of candidates, or while candidates still arrive.

Private: the scores. This package knows no tables and no contexts, only whole numbers, exact
fractions and a random source.
"""
