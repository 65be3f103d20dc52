"""The steps of a case: what each of them does, and what it must answer.

The verbs are those of `tupelo`, and all of them return at once. The caller chooses what lies
between them and a space. Python cannot represent some values: a timestamp of single nanoseconds, a
map with the keys 1 and 1.0, an object of another language. They must be refused as such (V3). A
text of that kind cannot be put from here, so it drops out of the lists that contain it.
"""

from time import sleep

import pytest

import tupelo as ts
from conformance.compare import bits, compare_events, compare_in_order
from conformance.entries import Entries, is_entry

NANOSECONDS = "whose nanoseconds a datetime can not hold"
BEYOND_PYTHON = (NANOSECONDS, "map with keys that Python calls equal", "codec")
ORDERS = {"max": ts.F.max, "min": ts.F.min}


def operation(step):
    name = next(name for name in step if name not in ("at", "in", "gives", "one_of", "error"))
    if "under" in step:
        return "put_under"
    return "time_passes" if name == "pass" else name


def template(texts):
    """Return the template of a text, or the OR of a list of texts (M8)."""
    if isinstance(texts, str):
        return ts.parse(texts)
    first, *rest = (ts.parse(text) for text in texts)
    for one in rest:
        first |= one
    return first


def without_waiting(step):
    """Let a put not wait for room; inside a transaction it never does."""
    return {} if "in" in step else {"timeout": 0}


def options(step):
    """Return the keyword arguments that a step has beside its template."""
    keywords = {name: step[name] for name in ("limit",) if name in step}
    if "order" in step:
        name, *field = step["order"].split()
        by = [int(one) if one.isdecimal() else one for one in field]
        keywords["order"] = ORDERS[name](*by) if by else name
    return keywords


def claim_terms(step):
    return {"ttl": step["ttl"], "max_attempts": step.get("max_attempts")}


def is_alone(fields):
    """Return whether a tuple has one field which, as the only argument, would be the whole."""
    return (
        not is_entry(fields)
        and len(fields) == 1
        and (type(fields[0]) is tuple or is_entry(fields[0]))
    )


def arguments(fields):
    """Return a tuple, or an entry, as a verb is given it."""
    assert not is_alone(fields), "only put_all takes such a tuple"
    return (fields,) if is_entry(fields) else fields


def actuals(fields):
    """Return a template that looks exactly like the tuple."""
    return ts.like(ts.F.in_(fields)) if is_alone(fields) else ts.like(*arguments(fields))


class Run:
    """A case: its steps, and the calls and scans that are under way in its two spaces."""

    def __init__(self, case, *, search, start):
        """Prepare to run a case.

        `search` is a search. `start` gets a space, "take" or "read", a template, and the terms of
        the claim that the call ends as, or None; it returns a call that is blocked.
        """
        self.entries = Entries(case["steps"])
        self._case = case
        self._search = search
        self._start = start
        self._spaces = {}
        self._steps_to_come = []
        self._calls = {}
        self._scans = {}
        self._subscriptions = {}
        self._leases = {}
        self._claims = {}
        self._transactions = {}
        self._has_nanoseconds = False
        self._has_tuples = False

    @property
    def opened_with(self):
        """What both spaces are opened with."""
        return {"size": "64M", "schema": self.entries.schema, **self._case.get("limits", {})}

    def steps(self, main, other):
        """Do one step after the other and compare its answer; yield after each of them."""
        self._spaces = {"main": main, "other": other}
        steps = self._case["steps"]
        try:
            for number, step in enumerate(steps):
                self._steps_to_come = steps[number + 1 :]
                try:
                    self._step(step)
                except Exception as error:
                    error.add_note(f"in step {number}: {step}")
                    raise
                yield
        finally:
            for call in self._calls.values():
                call.cancel()

    def _step(self, step):
        name = operation(step)
        here = self._here(step)
        if "error" in step:
            # A claim that was settled, or a transaction, is misuse (TUP-019): a ValueError here.
            with pytest.raises((ts.TupeloError, ValueError)) as caught:
                getattr(self, name)(step, here)
            assert str(caught.value).startswith(step["error"] + ": ")
            return
        self._has_nanoseconds = self._has_tuples = False
        answer = getattr(self, name)(step, here)
        assert self._has_tuples or not self._has_nanoseconds
        if "one_of" in step:
            assert bits(answer) in [bits(self._tuple(text)) for text in step["one_of"]]
        elif "gives" in step:
            self._compare(name, answer, step["gives"])

    def _tuple(self, text):
        return self.entries.tuple(text)

    def _tuples(self, texts):
        return [self._tuple(text) for text in texts]

    def _representable(self, texts):
        """Return the tuples of these texts, without those that Python says it cannot represent.

        Of a step with nanoseconds some have to be left: were all timestamps refused as if they had
        them, it would show nothing.
        """
        tuples = []
        for text in texts:
            try:
                tuples.append(self._tuple(text))
            except ts.NotEncodable as refusal:
                if not any(what in str(refusal) for what in BEYOND_PYTHON):
                    raise
                self._has_nanoseconds |= NANOSECONDS in str(refusal)
        self._has_tuples |= bool(tuples)
        return tuples

    def _here(self, step):
        space = self._spaces[step.get("at", "main")]
        return self._transactions[step["in"]].on(space) if "in" in step else space

    def _elsewhere(self, step):
        return self._spaces["main" if step.get("at") == "other" else "other"]

    def _compare(self, name, answer, expected):
        if isinstance(expected, str):
            assert bits(answer) == bits(self._tuple(expected))
        elif name == "dead":
            self._compare_dead(answer, expected)
        elif name == "scan":
            found = sorted(map(repr, map(bits, answer)))
            assert found == sorted(map(repr, map(bits, self._tuples(expected))))
        elif name == "events":
            assert [event[2:] for event in answer] == [
                (seq, missed) for *_, seq, missed in expected
            ]
            wanted = [(kind, self._tuple(text)) for kind, text, *_ in expected]
            compare_events([event[:2] for event in answer], wanted)
        elif isinstance(expected, list):
            compare_in_order(answer, self._tuples(expected))
        else:
            assert answer == expected
            assert type(answer) is type(expected)

    def _compare_dead(self, letters, expected):
        wanted = [self._tuple(text) for text, _, _ in expected]
        compare_in_order([letter.tuple for letter in letters], wanted)
        for letter, (_, attempts, reasons) in zip(letters, expected, strict=True):
            assert letter.attempts == attempts
            for told, reason in zip(letter.reasons, reasons, strict=True):
                assert reason is None or told == reason

    def put(self, step, here):
        terms = {name: step[name] for name in ("lease", "after") if name in step}
        fields = self._tuple(step["put"])
        if is_alone(fields):
            assert here.put_all([fields], **terms, **without_waiting(step)) == 1
            return
        lease = here.put(*arguments(fields), **terms, **without_waiting(step))
        assert (lease is not None) == bool(terms)
        self._leases[step.get("as")] = lease

    def put_all(self, step, here):
        terms = {name: step[name] for name in ("lease",) if name in step}
        return here.put_all(self._tuples(step["put_all"]), **terms, **without_waiting(step))

    def put_if_absent(self, step, here):
        fields = self._tuple(step["put_if_absent"])
        terms = {name: step[name] for name in ("lease", "after") if name in step}
        keywords = {"unless": template(step["unless"]), **terms, **without_waiting(step)}
        return bool(here.put_if_absent(*arguments(fields), **keywords))

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
        return here.try_swap(template(step["try_swap"]), to=self._tuple(step["to"]))

    def wait_none(self, step, here):
        return here.wait_none(template(step["wait_none"]), timeout=0)

    def move_to(self, step, here):
        return here.move_to(self._elsewhere(step), template(step["move_to"]))

    def copy_to(self, step, here):
        return here.copy_to(self._elsewhere(step), template(step["copy_to"]))

    def search(self, step, here):
        spaces = [here, self._elsewhere(step)]
        want = step.get("want", "take")
        return self._search(spaces, template(step["search"]), timeout=0, want=want).tuple

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
            seen.remove(bits(self._tuple(text)))
        for text in step["meanwhile"]:
            fields = bits(self._tuple(text))
            if fields in seen:
                seen.remove(fields)
        assert seen == []

    def start(self, step, here):
        want, label = "take" if "take" in step else "read", step["start"]
        terms = self._claim_that_ends(label)
        self._calls[label] = self._start(here, want, template(step[want]), terms)

    def _claim_that_ends(self, label):
        """Return the terms of the claim that a call, which is to begin, ends as; None if as none.

        A case says so only at the end, but who calls has to know it.
        """
        for step in self._steps_to_come:
            if label in (step.get("finish"), step.get("cancel")):
                return None
            if step.get("finish_claim") == label:
                return claim_terms(step)
        return None

    def pending(self, step, _here):
        assert self._calls[step["pending"]].is_pending()

    def served(self, step, _here):
        assert self._calls[step["served"]].is_served()

    def finish(self, step, _here):
        return self._end(step["finish"])

    def _end(self, label):
        call = self._calls.pop(label)
        assert call.is_served()
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
        return self._leases[step["lease_ends"]].expires_in_s is not None

    def claim(self, step, here):
        terms = {**claim_terms(step), **options(step)}
        return self._claimed(step, here.claim(template(step["claim"]), timeout=0, **terms))

    def finish_claim(self, step, _here):
        return self._claimed(step, self._end(step["finish_claim"]))

    def _claimed(self, step, claim):
        self._claims[step["as"]] = claim
        assert claim.attempt == step.get("attempt", claim.attempt)
        return claim.tuple

    def put_under(self, step, _here):
        self._claims[step["under"]].put(*arguments(self._tuple(step["put"])))

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
            for fields in self._representable(step[answer]):
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
        tuples = self._representable(texts)
        for one in tuples:
            here.put_all([one])
            for other in tuples:
                found = here.try_read(actuals(other))
                alike = all_alike or one is other
                assert (found is not None) == alike, (one, other)
            here.take_all(ts.REST)

    def round_trip(self, step, here):
        for fields in self._representable(step["round_trip"]):
            for wanted in (ts.like(ts.REST), actuals(fields)):
                here.put_all([fields])
                assert bits(here.try_read(wanted)) == bits(fields)
                assert bits(here.try_take(wanted)) == bits(fields)
            assert here.count(ts.REST) == 0
