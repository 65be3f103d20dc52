"""Processes, clocks, statistics and records: what every experiment needs, whatever it does."""
