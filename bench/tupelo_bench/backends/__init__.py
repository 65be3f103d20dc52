"""Tupelo and its peers, a file or a folder each, behind the interface in `base`."""
