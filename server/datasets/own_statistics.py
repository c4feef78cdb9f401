"""Registered statistics of a dataset file: each is one whose distance to instability can be computed, or is refused."""

from __future__ import annotations

from privacy.policy import Dataset
from privacy.refusal import Finding, Refused
from server.datasets.finding import ERROR
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.own_statistics import lift_statistic

__all__ = ["judge_statistics"]


def judge_statistics(dataset: Dataset) -> list[Finding]:
    """Why registered statistics cannot be answered: nothing where all can. Depends on declarations only."""
    found = []
    for own in dataset.statistics:
        try:
            lift_statistic(own, dataset, DUCKDB)
        except Refused as refused:
            found += [
                Finding(
                    ERROR,
                    what=f'statistic "{own.name}" cannot be registered: {finding.what}',
                    why=finding.why,
                    instead=finding.instead,
                    field=f"statistics.{own.name}.sql",
                )
                for finding in refused.findings
            ]
    return found
