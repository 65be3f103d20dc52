"""The cases over the synchronous API."""

import tupelo as ts
from conformance.run import Run
from tupelo._native import claimant, waiter


def hold(case, new_url):
    """Run a case; an error says in which step."""
    run = Run(case, search=ts.search, start=Call)
    with (
        ts.connect(new_url(), **run.opened_with) as main,
        ts.connect(new_url(), **run.opened_with) as other,
    ):
        run.entries.connected(main)
        for _ in run.steps(main, other):
            pass


class Call:
    """A blocked call: its place in the wait queue, without a thread that would wait in it."""

    def __init__(self, space, want, wanted, claim_terms):
        """Join the wait queue; with terms of a claim it ends as one."""
        if claim_terms is None:
            self._waiter = waiter(space, want, wanted)
        else:
            self._waiter = claimant(space, wanted, **claim_terms)
        self._claim_terms = claim_terms

    def is_pending(self):
        return not self._waiter.wait(0)

    def is_served(self):
        return self._waiter.wait(0)

    def finish(self):
        if self._claim_terms is None:
            return self._waiter.finish()
        return self._waiter.claim_now(**self._claim_terms)

    def cancel(self):
        self._waiter.cancel()
