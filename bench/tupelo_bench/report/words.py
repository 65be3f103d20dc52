"""The words of the tables, and how to read the figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.presentation.tables import Table

if TYPE_CHECKING:
    from tupelo_bench.harness.record import Run

HOW_DRAWN = (
    "Bars and marks are means, the lines on them standard deviations of all samples; those that"
    " would reach zero on a logarithmic axis go on to its lower edge. A faint dotted line crosses"
    " cells that were not measured. A figure with fewer than half of its marks is not drawn. In"
    " latency under"
    " load a line ends where one request is all that was slower; the rate stands behind the name."
)
EVERYWHERE = (
    ("cell", "an experiment with certain parameters, on one system: a row of `run.csv`"),
    ("repeat", "a cell once more, with new processes and spaces, and random numbers of its own"),
    ("apart, together, free", "client and server on a processor each, both on one, all on any"),
    ("over budget", "the cell needed more than its share of the time that the run was given"),
    ("repeat stopped", "the time was over before a repeat had ended; the cell has those before it"),
)
OF_EXPERIMENTS = {
    "mem": (
        ("cycle", "a hundred puts, then as many takes; each half is a sample"),
        ("fill", "tuples that were there before, and stay"),
        ("key first, key last", "a take names one field, the first or the last; the rest is open"),
        ("bridge", "the way from Python into the other language and back, without an operation"),
    ),
    "settle": (
        ("phase", "what a client does without a pause: writes all its objects, or takes as many"),
        ("window", "a second in which all clients write, or all take; what they do is counted"),
        ("response time", "of a client: both its phases, or a thousand objects in its windows"),
        ("paper", "the series with the delays of the paper, in which clients hardly meet today"),
        ("all at once", "the series in which all clients are active in the same windows"),
        ("paper aged", "the clients of the series paper, in a space as the next line says"),
        ("aged", "in a space that so many operations had populated before the clients began"),
        ("knee", "clients beyond which the response time rises and throughput hardly does"),
    ),
    "cases": (
        ("local, remote", "of the process's own space; of that of the master or another worker"),
        (
            "reading",
            (
                "getting tuples, also by removing them, within a program; by a key: of those that"
                " are known to be there, after it"
            ),
        ),
        ("withdrawing", "removing what is in the own space"),
        ("handing out", "what the master puts for each worker at the beginning, and their takes"),
        ("collecting", "the master's takes of the results, in the password search and sorting"),
        ("as listed", "the program of the paper, with partial rows that are taken and put back"),
        ("summed locally", "a variant without these, whose workers make their rows themselves"),
        ("search", "from when a worker begins to look for a tuple to when it has it"),
        (
            "search median",
            (
                "of all searches of a repeat: without the first ones, in which Tupelo builds its"
                " index (others are told the keys before), and which are in the mean"
            ),
        ),
        ("visited nodes", "spaces that a search has looked into; again counts again"),
        (
            "total",
            (
                "from when the first process goes on (in sorting and by blocks: the master) to the"
                " master's result"
            ),
        ),
        ("coordination", "share of the total that operations take, without the waiting in them"),
        ("uniform, B-1", "the rows of the second matrix lie at all workers, or all at one"),
        ("round robin", "a search asks the spaces in the order of the list"),
        ("success factor", "a search asks first where most were found"),
    ),
    "rpc": (
        ("open loop", "requests are due at a fixed rate, whether or not the last is answered"),
        (
            "p50, p99, p99.9",
            "half, 99 % and 99.9 % of all calls of all repeats took at most so long",
        ),
        ("half of its own", "half of the rate that the system reached when asked without pause"),
        ("undirected", "a request goes to a server that is idle, or has answered"),
        ("directed, in turn", "a request names its server: each has its turn, idle or not"),
    ),
    "sort": (
        ("sort", "what the workers' loop is written in: C everywhere, so that columns compare"),
        ("work-normalised", "without the gain of shorter lists: P of them are a P-th of the work"),
    ),
}


def words(run: Run) -> Table:
    """What is said of parameters and metrics in few letters, of the experiments that were run."""
    there = {measure.experiment for measure in run.measures}
    rows = list(EVERYWHERE)
    for name, own in OF_EXPERIMENTS.items():
        if name in there:
            rows += own
    return Table("Words", ("word", "what it means here"), tuple(rows))
