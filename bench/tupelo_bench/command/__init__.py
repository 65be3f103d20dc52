"""The parts of the command line: what may be asked, and what is done then."""
