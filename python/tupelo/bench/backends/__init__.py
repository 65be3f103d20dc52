"""Tupelo and its peers, one file each, behind the interface in `base`."""
