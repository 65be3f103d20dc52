"""An entry of a class that refuses to be made, where a test says so."""

from dataclasses import dataclass


@dataclass
class Refusing:
    """An entry that is made only where somebody allows it."""

    number: int
    is_allowed = True

    def __post_init__(self):
        if not Refusing.is_allowed:
            message = "not here"
            raise ValueError(message)
