"""How many questions a limit affords, under each way of adding up privacy loss: figures for planning and for teaching.

Nothing here decides about a charge: `accountant.filter` does, in whole numbers. Figures are floats, and a way of adding
up may be one that holds only for questions fixed beforehand, or one that is wrong and printed in books: each says so.

| module | what |
|---|---|
| `questions` | one kind of question, asked again and again |
| `theorems` | composition theorems in closed form, right ones and wrong ones |
| `renyi` | Renyi curves, at one order, at several, at the best |
| `distribution` | the distribution of the loss itself, composed numerically |
| `ways` | all of them in one table, with their standing and their source |
"""

from accountant.simulation.questions import Kind, Repeated
from accountant.simulation.ways import WAYS, Figures, Standing, Way, simulate

__all__ = ["WAYS", "Figures", "Kind", "Repeated", "Standing", "Way", "simulate"]
