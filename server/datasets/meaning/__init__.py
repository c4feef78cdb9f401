"""The third stage: what must hold between the parts of a dataset file."""

from server.datasets.meaning.order import check_meaning
from server.datasets.meaning.policy import DELTA_MAX, EPSILON_MAX
from server.datasets.meaning.sources import Headers

__all__ = ["DELTA_MAX", "EPSILON_MAX", "Headers", "check_meaning"]
