"""The values of options: what is wrong with one that can not be, and what to type instead."""

from __future__ import annotations

import argparse
import math
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from tupelo_bench.harness.budget import FOREVER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MINUTES_MAX = 10_080  # a week; what waits for a process can not be told to wait for a month
ALIKE = 0.6  # of 1: a name that is that near is what was meant
SHOWN_MAX = 40  # characters of a value in a message
BOUNDLESS = ("inf", "infinity", "infinite", "unlimited", "never", "forever")  # as people may say it


def refusal(message: str) -> argparse.ArgumentTypeError:
    """What the parser shows, after the name of the option, before it exits with 2."""
    return argparse.ArgumentTypeError(message)


def one_of(names: Sequence[str]) -> Callable[[str], str]:
    """An argument that is a name."""

    def parsed(text: str) -> str:
        if text in names:
            return text
        near = nearest(text, names)
        meant = f"did you mean {near}? " if near else ""
        message = f"there is no {shown(text)}: {meant}there are {', '.join(names)}"
        raise refusal(message)

    return parsed


def several_of(names: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """An argument that is names with commas between them."""
    parse = one_of(names)
    return lambda text: tuple(parse(word.strip()) for word in text.split(","))


def whole(option: str, example: int) -> Callable[[str], int]:
    """An argument that is a whole number."""

    def parsed(text: str) -> int:
        try:
            return int(text)
        except ValueError:
            message = f"{shown(text)} is no whole number: type one, as in {option} {example}"
            raise refusal(message) from None

    return parsed


def seed(text: str) -> int:
    """A seed: a generator of random numbers takes none below 0."""
    number = whole("--seed", 1)(text)
    if number < 0:
        message = f"must be 0 or more, not {number}: type --seed 0 or more"
        raise refusal(message)
    return number


def positive(option: str, example: int) -> Callable[[str], int]:
    """An argument that counts something."""

    def parsed(text: str) -> int:
        number = whole(option, example)(text)
        if number < 1:
            message = f"must be 1 or more, not {number}: type {option} 1 or more"
            raise refusal(message)
        return number

    return parsed


def minutes(text: str) -> float:
    """A number of minutes, in seconds; infinitely many for `none`."""
    if text == "none":
        return FOREVER_S
    word = text.strip().lstrip("+").lower()
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if word != "nan" and (word in BOUNDLESS or nearest(word, ["none"])):
        message = f"{shown(text)} is no number of minutes: no limit is --budget none"
    elif math.isnan(number):
        message = (
            f"{shown(text)} is no number of minutes: type a whole one, as in --budget 30, or"
            " --budget none for no limit"
        )
    elif number <= 0:
        message = (
            f"{shown(text)} minutes are no time to measure in: the least is --budget 1, and with"
            " --quick a run takes seconds"
        )
    elif number > MINUTES_MAX:
        message = (
            f"{shown(text)} minutes are more than a week: the most is --budget {MINUTES_MAX},"
            " and no limit is --budget none"
        )
    elif number != int(number):
        message = f"must be whole minutes, not {shown(text)}: type --budget {math.ceil(number)}"
    else:
        return 60.0 * number
    raise refusal(message)


def frequencies(option: str, of: Mapping[Any, float]) -> Callable[[str], dict[Any, float]]:
    """An argument that gives each of some things a frequency."""
    names = [str(name) for name in of]
    usual = ",".join(f"{100 * share:.0f}" for share in of.values())
    needs = f"needs {len(of)} numbers, for {', '.join(names)} in this order"

    def parsed(text: str) -> dict[Any, float]:
        words = [word.strip() for word in text.split(",")]
        wrong = _wrong(words, len(of))
        if wrong:
            named = _named(words, names)
            meant = f"did you mean {option}={named}?" if named else f"as in {option}={usual}"
            message = f"{wrong} in {shown(text)}: {needs}; {meant}"
            raise refusal(message)
        return dict(zip(of, map(float, words), strict=True))

    return parsed


def _wrong(words: Sequence[str], count: int) -> str | None:
    """What is wrong with frequencies; None if nothing is."""
    numbers = []
    for word in words:
        try:
            number = float(word)
        except ValueError:
            return f"{shown(word)} is no number"
        if not math.isfinite(number):
            return f"{shown(word)} is not finite"
        if number < 0:
            return f"{shown(word)} is less than 0"
        numbers.append(number)
    if len(numbers) != count:
        return f"{len(numbers)} {'number' if len(numbers) == 1 else 'numbers'}"
    if not sum(numbers):
        return "nothing is above 0"
    return None if math.isfinite(sum(numbers)) else "the sum is too large"


def _named(words: Sequence[str], names: Sequence[str]) -> str | None:
    """The frequencies of who typed names instead: all alike; None if one is not known."""
    meant = [nearest(word, names) for word in words]
    if not meant or None in meant:
        return None
    return ",".join("1" if name in meant else "0" for name in names)


def nearest(text: str, names: Sequence[str]) -> str | None:
    """The name that was meant; None if none is near."""
    by_lower = {name.lower(): name for name in names}
    found = get_close_matches(text.strip().lower(), by_lower, n=1, cutoff=ALIKE)
    return by_lower[found[0]] if found else None


def shown(text: str) -> str:
    """A value in quotes, cut where it is long."""
    return repr(text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "...")
