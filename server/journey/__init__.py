"""The steps of the journey, a file each; server/answer.py puts them in order.

| file | step |
|---|---|
| preparing | 2 and 3: text to cores and statements, cached |
| quoting | 4: the price and what may be said about it; estimates |
| reuse | stored releases in place of fresh ones: the one rule of who may use which |
| admission | 5: who pays, retries, repeats, the reservation, cancelling |
| running | 6 to 8: rows to noisy tables at a visible moment; the answer, stored and sent |
"""
