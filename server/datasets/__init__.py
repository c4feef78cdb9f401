"""Dataset files: one YAML file per dataset, checked as a whole, turned into the vocabulary of `privacy`."""

from server.datasets.check import check, check_text, load, load_stored, load_text
from server.datasets.convert import public_columns, sources, to_dataset
from server.datasets.finding import DatasetFileRefused, is_error, listed, paragraph, severity
from server.datasets.model import DatasetFile
from server.datasets.propose import propose
from server.datasets.schema import json_schema
from server.datasets.upgrade import Upgraded, upgrade

__all__ = [
    "DatasetFile",
    "DatasetFileRefused",
    "Upgraded",
    "check",
    "check_text",
    "is_error",
    "json_schema",
    "listed",
    "load",
    "load_stored",
    "load_text",
    "paragraph",
    "propose",
    "public_columns",
    "severity",
    "sources",
    "to_dataset",
    "upgrade",
]
