"""What runs the cases of the folder `conformance/`: one runner, over each API of Python."""
