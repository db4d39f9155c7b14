"""Experiments on real tables, found through the environment variable PCOR_DATA. NOT PRIVATE."""
