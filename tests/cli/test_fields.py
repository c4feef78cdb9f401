"""Refusals on a command line name the options that were typed, of every command that sends a body."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel
from typer.models import ArgumentInfo, OptionInfo

from server.cli.client import _problem_failure
from server.cli.fields import FIELDS, of_path, option_of, with_options
from server.cli.program import COMMANDS
from server.wire.batches import BatchBody
from server.wire.budget_requests import BudgetRequestBody
from server.wire.dashboards import LinkBody
from server.wire.lending import LendBody, ReasonBody
from server.wire.model_requests import ModelBody
from server.wire.monitor_requests import EvaluationBody, MonitorBody
from server.wire.requests import QueryBody, SharpenBody, StopBody
from server.wire.statistic_requests import StatisticBody
from server.wire.streams import StreamBody, StreamQueriesBody
from server.wire.synthetic_requests import SyntheticBody
from server.wire.webhook_requests import WebhookBody
from tests.cli.support import refused
from tests.cli.test_asking import Stand, stand

__all__ = ["stand"]

SENT: dict[str, tuple[str, type[BaseModel]]] = {
    "query": ("/v1/queries", QueryBody),
    "estimate": ("/v1/estimates", QueryBody),
    "sharpen": ("/v1/queries/q_1:sharpen", SharpenBody),
    "batch": ("/v1/batches", BatchBody),
    "model fit": ("/v1/models", ModelBody),
    "statistic ask": ("/v1/statistics", StatisticBody),
    "synthetic make": ("/v1/synthetic", SyntheticBody),
    "monitor open": ("/v1/monitors", MonitorBody),
    "monitor check": ("/v1/monitors/m_1/evaluations", EvaluationBody),
    "stream open": ("/v1/streams:estimate", StreamBody),
    "stream ask": ("/v1/streams/st_1/queries", StreamQueriesBody),
    "dashboard link": ("/v1/dashboards/d_1/links", LinkBody),
    "webhook add": ("/v1/webhooks", WebhookBody),
    "team stop": ("/v1/principals/ann:stop", StopBody),
    "team resume": ("/v1/principals/ann:resume", StopBody),
    "request make": ("/v1/budget-requests", BudgetRequestBody),
    "budget lend": ("/v1/budgets/b_1:lend", LendBody),
    "budget recall": ("/v1/budgets/b_1:recall", ReasonBody),
}
OTHERS = {"--url", "--key", "--key-file", "--home", "--json", "--idempotency-key", "--estimate", "--file", "--format"}
"""Options that are no field of a body, or another way to give one."""
SWITCHES = {"--accept-noise", "--merge", "--nonnegative", "--nonempty", "--with-cut", "--stream", "--for-dataset"}
OTHERS |= {"--plan", "ID", "QUERY", "PRINCIPAL"}


def typed(command: str) -> set[str]:
    """The options of a command, and the names of its arguments."""
    found = set()
    from server.cli.options import spread

    for parameter in inspect.signature(spread(COMMANDS[command])).parameters.values():
        declared = parameter.default
        if isinstance(declared, ArgumentInfo):
            found.add(str(declared.metavar).strip("[]"))
        elif isinstance(declared, OptionInfo):
            found.add(next(name for name in declared.param_decls or () if name.startswith("--")))
    return found - OTHERS


def fields_of(model: type[BaseModel]) -> set[str]:
    """The dotted paths of the fields of a body, without the places of lists."""
    schema = model.model_json_schema()

    def walked(node: dict[str, Any], path: str, depth: int) -> Iterator[str]:
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
        for part in (*node.get("anyOf", ()), *([node["items"]] if isinstance(node.get("items"), dict) else ())):
            yield from walked(part, path, depth)
        for name, inner in node.get("properties", {}).items() if depth < 4 else ():
            yield f"{path}{name}"
            yield from walked(inner, f"{path}{name}.", depth + 1)

    return set(walked(schema, "", 0))


def test_every_command_that_sends_a_body_is_in_the_table() -> None:
    """Whatever command calls a method of the client that sends one; a webhook that is tried out has an empty one."""
    sends = re.compile(r"client\.(?:post|make|ask|estimate|price_of|sharpen|ask_\w+)\(")
    found = {name for name, function in COMMANDS.items() if sends.search(inspect.getsource(function))}
    assert found - {"webhook test"} == set(SENT)
    assert {path for path in FIELDS if not any(of_path(sent) is FIELDS[path] for sent, _ in SENT.values())} == set()


@pytest.mark.parametrize("command", SENT)
def test_each_option_fills_a_field_and_each_field_is_named_by_it(command: str) -> None:
    """Both ways: no option without a field that a refusal may name, no option in the table that the command lacks, no
    field that the body lacks; and a refusal about each field names the option in its place, reason and advice."""
    path, model = SENT[command]
    fields = of_path(path)
    assert set(fields.values()) == typed(command)
    assert set(fields) <= fields_of(model)
    for field, option in fields.items():
        name = field.rpartition(".")[2]
        value: Any = (
            True if option in ("--accept-noise", "--nonempty", "--with-cut", "--stream", "--for-dataset") else "7"
        )
        body: Any = value if option != "--when-asked" else False
        for part in reversed(field.split(".")[1:]):
            body = {part: body}
        advice = f'name "{field.split(".")[0]}": {json.dumps(body)} in its place'
        if field == "queries.where":
            advice = 'name {"key": "age", "low": 7} in its place'
        finding = {"code": "invalid_request", "what": "it is refused", "why": f"The {name} is.", "field": field}
        problem = {**finding, "instead": [advice], "findings": [{**finding, "instead": [advice]}]}
        said = str(_problem_failure(problem, fields))
        assert f"({option})" in said
        assert "_" not in said.replace("invalid_request", "")
        assert '"' not in said, said
        assert option in said.partition("What to do: ")[2] or not option.startswith("-")


ADVICE = [
    (
        "stream open",
        'name it: "contribution": {"rows_per_unit": 5, "groups_per_unit": 5, "rows_per_unit_and_group": 5}: why not',
        "name it: --rows-per-unit 5: why not",
    ),
    (
        "query",
        'name it: "contribution": {"rows_per_unit": 5, "groups_per_unit": 4}',
        "name it: --rows-per-unit 5 --groups-per-unit 4",
    ),
    ("stream ask", 'write {"key": "sex", "values": ["female", null, "x y"]}', "write --where 'sex=female,x y'"),
    ("stream ask", 'write {"key": "age", "low": 30, "high": 49} alone', "write --where age:30..49 alone"),
    (
        "stream open",
        'the columns: "table": "people", "columns": [{"name": "age", "low": 18, "high": 89, "step": 5}]',
        "the columns: people --column age:18..89/5",
    ),
    ("query", '"accuracy": {"half_width": "..."}, or --half-width', "--half-width"),
    ("batch", 'or "nothing": {"of": 1} and "spend": {"of": 2}', 'or "nothing": {"of": 1} and "spend": {"of": 2}'),
    ("query", "declare contribution: {rows_per_unit: 40}", "declare contribution: {rows_per_unit: 40}"),
    ("query", 'broken: "delta": {', 'broken: "delta": {'),
]


@pytest.mark.parametrize(("command", "advice", "expected"), ADVICE)
def test_advice_is_what_can_be_typed(command: str, advice: str, expected: str) -> None:
    """Members of a body become options, once where one option fills several; what has no option stays as it is."""
    assert with_options(advice, of_path(SENT[command][0])) == expected


def test_places_in_lists_are_those_of_their_option() -> None:
    """The place of an item, and a field that nothing fills."""
    assert option_of("columns.3.low", FIELDS["/v1/streams"]) == "--column"
    assert option_of("confidence", FIELDS["/v1/models"]) == "confidence"
    assert of_path("/v1/budgets") == {}


def test_a_refusal_of_a_command_has_its_options(stand: Stand) -> None:
    """From the address that was asked to the message that is read."""
    instead = ['name it: "contribution": {"rows_per_unit": 4, "groups_per_unit": 4, "rows_per_unit_and_group": 4}']
    finding = {
        "code": "contribution_not_named",
        "what": "it is refused",
        "why": "No rows_per_unit.",
        "instead": instead,
    }
    stand.replies = [(422, {**finding, "charged": False, "findings": [finding]})]
    ran = stand.ask("stream", "open", "visits", "--column", "ward", "--epsilon", "1", "--dataset", "d")
    refused(ran, "Why: No --rows-per-unit.", "name it: --rows-per-unit 4\n")
