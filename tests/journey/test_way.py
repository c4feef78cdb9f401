"""How long the way of one query is: the figures of `python -m tests.journey.count_way`, which may not grow unseen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journey.count_way import counted
from tests.journey.test_trace import HANDED_DOWN, mutual_pairs

FILES_MAX = 255
"""167, with a warning that noise may bring or not. The issue that asked for it aimed at 55, and counted 79: every file
that was cut since where it changes subject counts once more, so the number of files says how finely the rooms are cut.
160 became 167 where answers began to say what their price is made of (wire_parts), which values noise alone may have
made (wire_held, nobody, and the errors that write a warning), and where value bounds come from (value_stage). 167
became 177 with the relations and functions of version 0.6: a file for each kind of them, of which a query enters what
it asks about to be told that it is not meant. 177 became 198 with unions, windows, stages and choices, which a query is
asked about likewise, and 201 where the lift was cut: blocks that are cores, nested rows, items of FROM. It became 212
where each kind of statistic got a file with its sums, what stored releases choose left admission, and joins with public
tables came; and 216 with what nested blocks share, nodes of dates and the tables of FROM items. It is 230 to 234, by
what noise brings, with conditions before joins and the order of joins, steps of values, kept totals, quantiles by name,
the price that is agreed, and files that were cut where they change subject. It is 236 to 238 with the columns of
statements, and differences of moments whose range is wide; 238 to 241 with the warning of synthetic rows; 240 to 243
where the list of aggregates was cut from what a description is, and estimators of moments from what their sums say, so
that both have room for the next one. Then ten files were put where they belong, 229 to 231: warnings that are a look at
the plan stand beside their list, the parameters of events beside their protocol, a run beside the pace that makes it,
and threads in turn beside the jobs that are their only user. 234 to 236 with what stored releases say of other
questions: the frame of a core, what is looked up by it, and what an answer says of it; one more with the
canonical form of conditions. 241 to 245 with finer groups, of which a question's own may be sums, and their noise;
245 to 248, by what noise brings, with running sums and what an answer says of how it measured them; 250 to 255 with the
cells that conditions tell apart, what a release's record says, and which releases are combined."""

CALLS_MAX = 1_380
"""970 to 998, of an aim of 350: the same cuts, and a call for each node of a tree that is written. 930 became 998 with
the same three, and where columns got a hash of their own (expressions.py), whose calls had no file before. 1,128 became
1,174 with the calls of these files: a layer asks each kind for its part, where one function told the kinds apart. 1,191
to 1,204 came with the same files as above; 1,222 with the text that outer queries make, which is weighed before it is
kept, and intervals as keys; 1,231 with the same cut of the estimators of moments, and what every route that charges
shares. 1,124 to 1,133, by what noise brings, since what an aggregate's description says is an attribute, an expression
is walked as a list and not step by step, a family of aggregates keeps the forms it was found by, and the expressions of
a core are listed once for its two costs. 1,205 to 1,213 with frames: the identity of a core without its aggregates is
looked up, and a fresh release is stored with what its sums say, of which each condition and argument has a digest. It
is 1,250 to 1,280 where finer groups are looked up too: each key has a digest, with its public values. 1,283
to 1,293, by what noise brings, with what a statement usually takes, which each shape says in a file of its own. 1,299
to 1,308 with running sums, and parts of a price that a width may split; 1,370 to 1,400 with the cells that a core's
conditions tell apart, which a fresh release is stored with, and others are answered by; 1,337 to 1,346 since the ledger
rounds one loss once, and not for each account and step that asks."""


@pytest.mark.slow
def test_the_way_of_a_warm_query_does_not_grow(tmp_path: Path) -> None:
    """Shows the files and calls of one POST /v1/queries, and that no files call each other but those that are named."""
    calls, entered = counted(tmp_path)
    assert mutual_pairs(calls) == HANDED_DOWN.keys()
    assert len(entered) <= FILES_MAX, sorted(entered)
    assert calls.total() <= CALLS_MAX
