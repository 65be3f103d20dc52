"""The cases of conformance/ hold in Python, for both kinds of space.

What Python cannot represent (a timestamp of single nanoseconds, a map with the keys 1 and 1.0, an
entry, an object of another language) must be refused as such (V3); a text of that kind cannot be
put from here, so it drops out of the lists it stands in. All others run to the bit.
"""

import json
import struct
from decimal import Decimal
from pathlib import Path
from time import sleep
from typing import NamedTuple

import pytest

import tupelo as ts
from tupelo._native import parse_tuple, waiter

CASES = [
    case
    for path in sorted((Path(__file__).parents[2] / "conformance").glob("*.json"))
    for case in json.loads(path.read_text(encoding="utf-8"))["cases"]
    # There entries of one name have now these fields and now others, which Python refuses to call
    # one class (SchemaMismatch): test_entries.py tells the rule in classes.
    if "M7" not in case["rule"]
]
BEYOND_PYTHON = (
    "timestamp",
    "an entry",
    "here is",
    "map with keys that Python calls equal",
    "codec",
)


@pytest.mark.parametrize("scheme", ["mem", "shm"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_case_holds(case, scheme, new_url):
    limits = case.get("limits", {})
    with (
        ts.connect(new_url(scheme), size="64M", **limits) as main,
        ts.connect(new_url(scheme), size="64M", **limits) as other,
    ):
        run = Run(main, other)
        for number, step in enumerate(case["steps"]):
            try:
                run.step(step)
            except Exception as error:
                error.add_note(f"in step {number}: {step}")
                raise


def test_every_operation_of_the_cases_is_known():
    assert CASES
    operations = {operation(step) for case in CASES for step in case["steps"]}
    assert operations <= set(vars(Run))


def operation(step):
    name = next(name for name in step if name not in ("at", "in", "gives", "one_of", "error"))
    if "under" in step:
        return "put_under"
    return "time_passes" if name == "pass" else name


class Bits(NamedTuple):
    """A value such that `==` compares it to the bit."""

    kind: str
    content: object


def bits(value):
    """Make a value comparable to the bit: kinds, the sign of zero, the exponent of a decimal."""
    kind = type(value).__name__
    if isinstance(value, float):
        return Bits(kind, struct.pack(">d", value))
    if isinstance(value, Decimal):
        return Bits(kind, value.as_tuple())
    if isinstance(value, (list, tuple)):
        return Bits(kind, tuple(bits(item) for item in value))
    if isinstance(value, dict):
        return Bits(kind, frozenset((bits(key), bits(item)) for key, item in value.items()))
    if kind == "ndarray":
        return Bits(kind, (value.dtype.str, value.shape, value.tobytes()))
    return Bits(kind, value)


def shape(fields):
    return tuple(type(field).__name__ for field in fields)


def by_shape(tuples):
    """Group tuples by shape, in order: between shapes there is no order (T2)."""
    groups = {}
    for fields in tuples:
        groups.setdefault(shape(fields), []).append(bits(fields))
    return groups


def by_kinds(events):
    """Group events by the shapes of their tuples, in order."""
    groups = {}
    for kind, fields, *_ in events:
        groups.setdefault(shape(fields), []).append((kind, bits(fields)))
    return groups


def representable(texts):
    """Return the tuples of these texts, without those that Python says it cannot represent."""
    tuples = []
    for text in texts:
        try:
            tuples.append(parse_tuple(text))
        except (ts.NotEncodable, ts.SchemaMismatch) as refusal:
            if not any(what in str(refusal) for what in BEYOND_PYTHON):
                raise
    return tuples


def template(texts):
    """Return the template of a text, or the OR of a list of texts (M8)."""
    if isinstance(texts, str):
        return ts.parse(texts)
    first, *rest = (ts.parse(text) for text in texts)
    for one in rest:
        first |= one
    return first


ORDERS = {"max": ts.F.max, "min": ts.F.min}


def without_waiting(step):
    """Let a put not wait for room; inside a transaction it never does."""
    return {} if "in" in step else {"timeout": 0}


def options(step):
    """Return the keyword arguments that a step has beside its template."""
    keywords = {name: step[name] for name in ("limit",) if name in step}
    if "order" in step:
        name, *field = step["order"].split()
        keywords["order"] = ORDERS[name](int(field[0])) if field else name
    return keywords


class Run:
    """Two spaces, and the calls and scans that are under way in them."""

    def __init__(self, main, other):
        self._spaces = {"main": main, "other": other}
        self._calls = {}
        self._scans = {}
        self._subscriptions = {}
        self._leases = {}
        self._claims = {}
        self._transactions = {}

    def step(self, step):
        """Do one step and compare its answer."""
        name = operation(step)
        here = self._here(step)
        if "error" in step:
            # A claim that was settled, or a transaction, is misuse (TUP-019): a ValueError here.
            with pytest.raises((ts.TupeloError, ValueError)) as caught:
                getattr(self, name)(step, here)
            assert str(caught.value).startswith(step["error"] + ": ")
            return
        answer = getattr(self, name)(step, here)
        if "one_of" in step:
            assert bits(answer) in [bits(parse_tuple(text)) for text in step["one_of"]]
        elif "gives" in step:
            self._compare(name, answer, step["gives"])

    def _here(self, step):
        space = self._spaces[step.get("at", "main")]
        return self._transactions[step["in"]].on(space) if "in" in step else space

    def _elsewhere(self, step):
        return self._spaces["main" if step.get("at") == "other" else "other"]

    def _compare(self, name, answer, expected):
        if isinstance(expected, str):
            assert bits(answer) == bits(parse_tuple(expected))
        elif name == "dead":
            self._compare_dead(answer, expected)
        elif name == "scan":
            found = sorted(map(repr, map(bits, answer)))
            assert found == sorted(repr(bits(parse_tuple(text))) for text in expected)
        elif name == "events":
            assert [event[2:] for event in answer] == [
                (seq, missed) for *_, seq, missed in expected
            ]
            told = [(kind, parse_tuple(text)) for kind, text, *_ in expected]
            assert by_kinds(answer) == by_kinds(told)
        elif isinstance(expected, list):
            assert by_shape(answer) == by_shape(parse_tuple(text) for text in expected)
        else:
            assert answer == expected
            assert type(answer) is type(expected)

    @staticmethod
    def _compare_dead(letters, expected):
        wanted = [(parse_tuple(text), attempts, reasons) for text, attempts, reasons in expected]
        assert by_shape(one.tuple for one in letters) == by_shape(one for one, _, _ in wanted)
        for letter, (_, attempts, reasons) in zip(letters, wanted, strict=True):
            assert letter.attempts == attempts
            for told, reason in zip(letter.reasons, reasons, strict=True):
                assert reason is None or told == reason

    def put(self, step, here):
        terms = {name: step[name] for name in ("lease", "after") if name in step}
        lease = here.put(*parse_tuple(step["put"]), **terms, **without_waiting(step))
        assert (lease is not None) == bool(terms)
        self._leases[step.get("as")] = lease

    def put_all(self, step, here):
        terms = {name: step[name] for name in ("lease",) if name in step}
        tuples = [parse_tuple(text) for text in step["put_all"]]
        return here.put_all(tuples, **terms, **without_waiting(step))

    def put_if_absent(self, step, here):
        fields = parse_tuple(step["put_if_absent"])
        return here.put_if_absent(*fields, unless=template(step["unless"]), timeout=0)

    def try_take(self, step, here):
        return here.try_take(template(step["try_take"]), **options(step))

    def try_read(self, step, here):
        return here.try_read(template(step["try_read"]), **options(step))

    def take(self, step, here):
        return here.take(template(step["take"]), timeout=0, **options(step))

    def read(self, step, here):
        return here.read(template(step["read"]), timeout=0, **options(step))

    def count(self, step, here):
        return here.count(template(step["count"]))

    def read_all(self, step, here):
        return here.read_all(template(step["read_all"]), **options(step))

    def take_all(self, step, here):
        return here.take_all(template(step["take_all"]), **options(step))

    def take_many(self, step, here):
        return here.take_many(
            template(step["take_many"]),
            n=step["at_most"],
            at_least=step["at_least"],
            timeout=0,
        )

    def try_swap(self, step, here):
        return here.try_swap(template(step["try_swap"]), to=parse_tuple(step["to"]))

    def wait_none(self, step, here):
        return here.wait_none(template(step["wait_none"]), timeout=0)

    def move_to(self, step, here):
        return here.move_to(self._elsewhere(step), template(step["move_to"]))

    def copy_to(self, step, here):
        return here.copy_to(self._elsewhere(step), template(step["copy_to"]))

    def search(self, step, here):
        spaces = [here, self._elsewhere(step)]
        want = step.get("want", "take")
        return ts.search(spaces, template(step["search"]), timeout=0, want=want).tuple

    def scan(self, step, here):
        return list(here.scan(template(step["scan"])))

    def begin_scan(self, step, here):
        self._scans[step["begin_scan"]] = here.scan(template(step["of"])), []

    def continue_scan(self, step, _here):
        scan, seen = self._scans[step["continue_scan"]]
        seen += [bits(found) for _, found in zip(range(step["by"]), scan, strict=False)]

    def end_scan(self, step, _here):
        scan, seen = self._scans.pop(step["end_scan"])
        seen += map(bits, scan)
        for text in step["throughout"]:
            seen.remove(bits(parse_tuple(text)))
        for text in step["meanwhile"]:
            fields = bits(parse_tuple(text))
            if fields in seen:
                seen.remove(fields)
        assert seen == []

    def start(self, step, here):
        want = "take" if "take" in step else "read"
        self._calls[step["start"]] = waiter(here, want, template(step[want]))

    def pending(self, step, _here):
        assert not self._calls[step["pending"]].wait(0)

    def served(self, step, _here):
        assert self._calls[step["served"]].wait(0)

    def finish(self, step, _here):
        call = self._calls.pop(step["finish"])
        assert call.wait(0)
        return call.finish()

    def cancel(self, step, _here):
        self._calls.pop(step["cancel"]).cancel()

    def time_passes(self, step, _here):
        sleep(step["pass"])

    def renew(self, step, _here):
        self._leases[step["renew"]].renew(step["lease"])

    def cancel_lease(self, step, _here):
        self._leases[step["cancel_lease"]].cancel()

    def lease_ends(self, step, _here):
        return self._leases[step["lease_ends"]].expires_in is not None

    def claim(self, step, here):
        options_ = {"ttl": step["ttl"], "max_attempts": step.get("max_attempts"), **options(step)}
        return self._claimed(step, here.claim(template(step["claim"]), timeout=0, **options_))

    def finish_claim(self, step, _here):
        call = self._calls.pop(step["finish_claim"])
        terms = {"ttl": step["ttl"], "max_attempts": step.get("max_attempts")}
        return self._claimed(step, call.claim_now(**terms))

    def _claimed(self, step, claim):
        self._claims[step["as"]] = claim
        assert claim.attempt == step.get("attempt", claim.attempt)
        return claim.tuple

    def put_under(self, step, _here):
        self._claims[step["under"]].put(*parse_tuple(step["put"]))

    def done(self, step, _here):
        self._claims[step["done"]].done(timeout=0)

    def abort(self, step, _here):
        self._claims[step["abort"]].abort(step["reason"])

    def extend(self, step, _here):
        self._claims[step["extend"]].extend(step["ttl"])

    def newer(self, step, _here):
        return self._claims[step["newer"]].fence > self._claims[step["than"]].fence

    def dead(self, step, here):
        return here.dead(template(step["dead"]))

    def requeue(self, step, here):
        return here.requeue(template(step["requeue"]))

    def begin(self, step, _here):
        main, other = self._spaces.values()
        self._transactions[step["begin"]] = main.transaction(other, ttl=step["ttl"])

    def commit(self, step, _here):
        self._transactions[step["commit"]].commit()

    def roll_back(self, step, _here):
        self._transactions[step["roll_back"]].abort()

    def subscribe(self, step, here):
        wanted = template(step["subscribe"])
        subscription = here.subscribe(wanted, on=step["on"], buffer=step["buffer"])
        self._subscriptions[step["as"]] = subscription

    def events(self, step, _here):
        subscription = self._subscriptions[step["events"]]
        return list(iter(subscription.try_next, None))

    def unsubscribe(self, step, _here):
        self._subscriptions.pop(step["unsubscribe"]).close()

    def refused(self, step, _here):
        for text in step["refused"]:
            with pytest.raises((ts.TupeloError, ValueError)):
                template(text)

    def matches(self, step, here):
        wanted = template(step["matches"])
        for answer in ("yes", "no"):
            for fields in representable(step[answer]):
                here.put_all([fields])
                assert here.count(wanted) == (answer == "yes"), fields
                for find in (here.try_read, here.try_take):
                    found = find(wanted)
                    assert (found is not None) == (answer == "yes"), fields
                    assert found is None or bits(found) == bits(fields)
                here.take_all(ts.REST)

    def same(self, step, here):
        self._pairs(step["same"], here, all_alike=True)

    def different(self, step, here):
        self._pairs(step["different"], here, all_alike=False)

    def _pairs(self, texts, here, *, all_alike):
        tuples = representable(texts)
        for one in tuples:
            here.put_all([one])
            for other in tuples:
                found = here.try_read(actuals(other))
                alike = all_alike or one is other
                assert (found is not None) == alike, (one, other)
            here.take_all(ts.REST)

    def round_trip(self, step, here):
        for fields in representable(step["round_trip"]):
            for wanted in (ts.like(ts.REST), actuals(fields)):
                here.put_all([fields])
                assert bits(here.try_read(wanted)) == bits(fields)
                assert bits(here.try_take(wanted)) == bits(fields)
            assert here.count(ts.REST) == 0


def actuals(fields):
    """Return a template that looks exactly like the tuple, also where that is one nested tuple."""
    if len(fields) == 1 and type(fields[0]) is tuple:
        return ts.like(ts.F.in_(fields))
    return ts.like(*fields)
