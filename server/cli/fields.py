"""What the fields of a request are on the command line: one table, and a server's words with options in place of them.

A command sends one body to one address. The server speaks of the members of that body, and who typed the command knows
its options.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping

from server.cli.output import Json, printable

__all__ = ["FIELDS", "of_path", "option_of", "with_options"]

_SPEND = {"spend.epsilon": "--epsilon", "spend.own_epsilon": "--own-epsilon"}
_BOUNDS = ("contribution.rows_per_unit", "contribution.groups_per_unit", "contribution.rows_per_unit_and_group")
_PAID = {"dataset": "--dataset", "budget": "--budget"}

_QUESTION = {
    **_PAID,
    **_SPEND,
    "sql": "SQL",
    "parameters": "--parameter",
    "accuracy.half_width": "--half-width",
    "accuracy.relative": "--relative",
    "accuracy.merge": "--merge",
    "accuracy.at_most": "--at-most",
    "accuracy.confidence": "--confidence",
    "contribution.rows_per_unit": "--rows-per-unit",
    "contribution.groups_per_unit": "--groups-per-unit",
    "contribution.rows_per_unit_and_group": "--rows-per-unit-and-group",
    "contribution": "--contribution",
    "accept_noise": "--accept-noise",
    "noise": "--noise",
    "mechanism": "--mechanism",
    "delta": "--delta",
    "nonempty": "--nonempty",
    "with_cut": "--with-cut",
    "nonnegative": "--nonnegative",
    "reuse": "--reuse",
    "max_cost": "--max-cost",
}

FIELDS: Mapping[str, Mapping[str, str]] = {
    "/v1/queries": _QUESTION,
    "/v1/queries/*:sharpen": {
        **_SPEND,
        "accuracy.half_width": "--half-width",
        "accuracy.relative": "--relative",
        "accuracy.at_most": "--at-most",
        "accuracy.confidence": "--confidence",
        "max_cost": "--max-cost",
    },
    "/v1/dashboards/*/links": {"label": "--label", "days": "--days"},
    "/v1/batches": {**_PAID, **_SPEND, "queries": "FILE", **dict.fromkeys(_BOUNDS, "--rows-per-unit")},
    "/v1/models": {
        **_PAID,
        **_SPEND,
        "sql": "SQL",
        "method": "--method",
        "iterations": "--iterations",
        "held_out": "--held-out",
        "clip": "--clip",
    },
    "/v1/statistics": {**_PAID, **_SPEND, "statistic": "NAME", "width": "--width"},
    "/v1/synthetic": {
        **_PAID,
        "table": "TABLE",
        "name": "NAME",
        "columns": "--column",
        "epsilon": "--epsilon",
        "rows_per_unit": "--rows-per-unit",
    },
    "/v1/monitors": {
        **_PAID,
        "sql": "SQL",
        "threshold": "--threshold",
        "epsilon": "--epsilon",
        "evaluations": "--evaluations",
        "direction": "--direction",
        "hits": "--hits",
        "answer_epsilon": "--answer-epsilon",
        "stream": "--stream",
        "background": "--when-asked",
        **dict.fromkeys(_BOUNDS, "--rows-per-unit"),
    },
    "/v1/monitors/*/evaluations": {"sql": "SQL", "threshold": "--threshold", "after": "--after", "wait_ms": "--wait"},
    "/v1/streams": {
        **_PAID,
        "table": "TABLE",
        "columns": "--column",
        "epsilon": "--epsilon",
        "updates": "--updates",
        "queries": "--queries",
        "tolerance": "--tolerance",
        "shared": "--for-dataset",
        **dict.fromkeys(_BOUNDS, "--rows-per-unit"),
    },
    "/v1/streams/*/queries": {"queries.where": "--where"},
    "/v1/budget-requests": {
        **{f"question.{field}": option for field, option in _QUESTION.items()},
        "dataset": "--dataset",
        "budget": "--budget",
        "reason": "--reason",
        "limit.epsilon": "--limit-epsilon",
        "limit.delta": "--limit-delta",
    },
    "/v1/budgets/*:lend": {
        "principal": "--principal",
        "limit.epsilon": "--epsilon",
        "limit.delta": "--delta",
        "expires": "--until",
    },
    "/v1/budgets/*:recall": {"reason": "--reason"},
    "/v1/principals/*:stop": {"reason": "--reason"},
    "/v1/principals/*:resume": {"reason": "--reason"},
    "/v1/webhooks": {"url": "ADDRESS", "events": "--event", "subjects": "--subject"},
}
"""For each address the fields of its body with the options of the command that sends it, or the names of arguments."""

_CONTRARY = "--when-asked"
_SAME = {"/v1/estimates": "/v1/queries"}
_MEMBER = re.compile(r'(?:, )?"(\w+)": ')
_BOTH = re.compile(r"(--[a-z-]+) [^,;:()]*, or (?=\1\b)")
_CONDITION = re.compile(r'\{"key": ')


def of_path(path: str) -> Mapping[str, str]:
    """The options of what is sent to a path; none where no command sends a body there."""
    path = path.removesuffix(":estimate")
    path = re.sub(r"\A(/v1/(?:monitors|streams|dashboards)/)[^/]+(?=/)", r"\1*", path)
    path = re.sub(
        r"\A(/v1/(?:queries|principals|budgets)/)[^/]+(?=:(?:sharpen|stop|resume|lend|recall)\Z)", r"\1*", path
    )
    return FIELDS.get(_SAME.get(path, path), {})


def option_of(field: str, fields: Mapping[str, str]) -> str:
    """What was typed for a field, such as `contribution.rows_per_unit` or `columns.0.low`; the field where nothing."""
    parts = [part for part in field.split(".") if not part.isdigit()]
    for end in range(len(parts), 0, -1):
        if (found := fields.get(".".join(parts[:end]))) is not None:
            return found
    return field


def with_options(text: str, fields: Mapping[str, str]) -> str:
    """A line of a server with the options of a command in place of members of its body, and of the names of fields."""
    text = _rewritten(text, _CONDITION, fields, first=False)
    text = _rewritten(text, _MEMBER, fields, first=True)
    # Names of one word are words of a sentence too: only those that could be nothing else are replaced.
    named = {field.rpartition(".")[2]: option for field, option in fields.items()}
    for name in sorted((name for name in named if "_" in name), key=len, reverse=True):
        text = re.sub(rf"(?<![\w-])`?{name}`?(?![\w:-])", named[name], text)
    # Advice that names both ways keeps the one with its example.
    return _BOTH.sub("", text)


def _rewritten(text: str, pattern: re.Pattern[str], fields: Mapping[str, str], *, first: bool) -> str:
    """The text with each piece of JSON in it that begins as the pattern says as options; `first` after a name."""
    found, at = [], 0
    while (match := pattern.search(text, at)) is not None:
        begin = match.end() if first else match.start()
        try:
            value, end = json.JSONDecoder().raw_decode(text, begin)
        except ValueError:
            value, end, options = None, match.end(), None
        else:
            options = _member(match[1], value, fields) if first else _condition(value, fields)
        if options is None:
            found.append(text[at:end])
        else:
            # Members that follow one another are options with a space between them.
            found += [text[at : match.start()], " " if match[0].startswith(", ") else "", options]
        at = end
    return "".join([*found, text[at:]])


def _member(name: str, value: object, fields: Mapping[str, str]) -> str | None:
    """A member of a body as options; None where a part of it has none."""
    if isinstance(value, dict):
        parts = [_member(f"{name}.{key}", one, fields) for key, one in value.items()]
        return None if None in parts else " ".join(dict.fromkeys(part for part in parts if part is not None))
    option = fields.get(name)
    if option is None:
        return None
    if isinstance(value, bool):
        # --when-asked says the contrary of its field; an option that is not given has no text.
        return option if value is (option != _CONTRARY) else None
    if isinstance(value, list):
        return " ".join(_typed(option, _spec(one)) for one in value)
    return _typed(option, value)


def _typed(option: str, value: object) -> str:
    """An option with its value; an argument is the value alone."""
    text = shlex.quote(printable(value))
    return f"{option} {text}" if option.startswith("-") else text


def _spec(column: object) -> object:
    """A column as it is typed: NAME:LOW..HIGH/STEP."""
    if not isinstance(column, dict) or "name" not in column:
        return column
    ends = f":{column['low']}..{column['high']}" if "low" in column and "high" in column else ""
    return f"{column['name']}{ends}{'/' + str(column['step']) if 'step' in column else ''}"


def _condition(value: Json, fields: Mapping[str, str]) -> str | None:
    """A condition on a key as it is typed; None where the command takes none."""
    option = fields.get("queries.where")
    if option is None:
        return None
    if "values" in value:
        values = [str(one).lower() if isinstance(one, bool) else str(one) for one in value["values"] if one is not None]
        return _typed(option, f"{value['key']}={','.join(values)}")
    return _typed(option, f"{value['key']}:{value.get('low', '')}..{value.get('high', '')}")
