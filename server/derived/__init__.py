"""Error bars of what the shell computes from released numbers, or the reason why there is none.

Which one a cell gets follows from its trace (`sql_rewrite/trace.py`), in this order:

    reads rows of hidden groups beside its own     none: the groups that were not shown are part of the true value
    reads rows that noisy numbers chose            none
    moved by no noisy number                       its value
    goes up or down with one number of its row     mapped: the shell at the ends of that number's interval
    linear in linear numbers                       linear: the exact law of the weighted sum of their noise
    goes up or down with several, or a rank        bounds: the shell at the ends of intervals that hold all at once
    nonlinear over rows                            none: noise pushes such values to one side
    quotients, products, functions of a row        simulated: the shell over released sums with fresh noise

Everything here is post-processing of released numbers. Where noisy numbers also decide which rows are shown, intervals
are widened to hold for all rows that might have been.
"""
