"""Every kind of problem: its code, its HTTP status, its meaning, and what to do where nobody says it better."""

from __future__ import annotations

from dataclasses import dataclass

from privacy.refusal import CODES

__all__ = ["PROBLEMS", "ProblemKind"]


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """One problem code: its HTTP status, its meaning in a sentence, and whether the same request may work later.

    `instead` is what to do where the problem itself does not say it: no problem leaves its reader without a next step.
    """

    code: str
    status: int
    meaning: str
    instead: tuple[str, ...]
    retryable: bool = False

    def __post_init__(self) -> None:
        assert self.meaning, self.code
        assert self.instead, self.code


_REFUSAL_STATUS = {
    "parse_error": 400,
    "unknown_dataset": 404,
    "unknown_statistic": 404,
    "budget_exhausted": 403,
    "no_budget": 403,
    "policy_forbids": 403,
    "above_max_cost": 403,
    "not_sharpened": 409,
    "text_not_kept": 409,
    "window_closed": 403,
    "execution_failed": 500,
}
"""Refusal codes that are not 422. An exhausted budget is 403: clients resend 429 and 503 by themselves."""

_CAPABILITIES = "GET /v1/capabilities lists the SQL that is answered."
_TABLES = "GET /v1/datasets/{dataset} lists the tables and columns that can be asked about."
_OPERATOR = "Ask the operator to look up the request id."

_REFUSAL_INSTEAD = {
    "parse_error": (f"Write one SELECT in DuckDB's dialect. {_CAPABILITIES}",),
    "not_a_query": ("Write one SELECT with aggregates, such as SELECT COUNT(*) FROM a_table.",),
    "many_statements": ("Send one statement per request, without text after a semicolon.",),
    "unknown_dataset": ("GET /v1/datasets lists the datasets that you may ask.",),
    "unknown_statistic": ("GET /v1/datasets/{dataset}/statistics lists those that you may ask.",),
    "unknown_table": (_TABLES,),
    "unknown_column": (_TABLES,),
    "ambiguous_column": ("Write the table or its alias before the column: a_table.a_column.",),
    "unsupported_sql": (_CAPABILITIES,),
    "unsupported_function": (_CAPABILITIES,),
    "unsupported_type": ("Use CAST, or a column of another type.", _TABLES),
    "volatile_function": ("Write a constant in its place.",),
    "raw_rows": ("Ask for statistics: COUNT(*), SUM, AVG, with GROUP BY for groups.",),
    "group_by_unit": ("Group by what many units share. COUNT(DISTINCT ...) counts units.",),
    "column_without_bounds": (
        "Write bounds: SUM(GREATEST(0, LEAST(a_column, 1000))).",
        "Ask an administrator to declare bounds.",
    ),
    "contribution_not_named": (
        'Name it: "contribution": {"rows_per_unit": 20}.',
        "GET /v1/datasets/{dataset} has the profile, where one is published.",
    ),
    "join_multiplies": ("Join along declared references, from the table with many rows to the one with few.", _TABLES),
    "join_not_on_key": ("Join on the columns of a declared reference.", _TABLES),
    "private_row_limit": ("Aggregate first; ORDER BY, LIMIT and windows are free on the aggregated rows.",),
    "correlated_subquery": ("Write the subquery so that it does not use columns of the outer query.",),
    "too_large": ("Write a shorter query, or split it.",),
    "no_groups": ("Compare the conditions with the declared keys of the columns.",),
    "key_domain_too_large": ("Group by fewer or coarser keys.",),
    "accuracy_unreachable": ("Ask for a wider half_width, or name a spend.", "POST /v1/estimates is free."),
    "cannot_be_planned": (
        "Write the expression in another way, or ask for its parts.",
        "Tell the operator the request id: the log has an incident.",
    ),
    "budget_exhausted": (
        "Ask for less: POST /v1/estimates shows the price for free.",
        "Ask an administrator to raise the limit.",
    ),
    "no_budget": ("Ask an administrator for a budget on this dataset.",),
    "above_max_cost": ("Ask for less, or allow more: POST /v1/estimates shows the price for free.",),
    "not_sharpened": ("Ask the question with the better wish: it is bought anew.",),
    "text_not_kept": ("Send the same question with the better wish: POST /v1/queries.",),
    "policy_forbids": ("GET /v1/datasets/{dataset} shows the limits of one query.",),
    "window_closed": ("Wait until available_at.",),
    "execution_failed": (
        "If the part above the aggregates can fail (a division by zero, a cast), correct it: what was released below "
        "it is stored, and the question costs nothing while that part stays the same.",
        "Ask for fewer groups or a simpler query.",
        _OPERATOR,
    ),
}
"""What to do where a refusal does not say it itself."""

_HTTP_KINDS = (
    ProblemKind(
        "invalid_json",
        400,
        "The body is not one strict JSON object.",
        ("Send one JSON object in UTF-8, each name once, numbers of ordinary size.",),
    ),
    ProblemKind(
        "invalid_request",
        422,
        "The request was read, and a part of it is missing or has a wrong value.",
        ("See /docs for the fields of this operation.",),
    ),
    ProblemKind(
        "unauthenticated",
        401,
        "The request carries no valid API key.",
        (
            "Send the header Authorization: Bearer ngk_... with an API key of this server.",
            "An administrator makes keys: POST /v1/keys, or noisegate key create NAME.",
        ),
    ),
    ProblemKind(
        "forbidden",
        403,
        "The caller's role does not serve this operation.",
        ("Use the key of a principal whose role this operation serves.", "GET /v1/me shows your role."),
    ),
    ProblemKind(
        "missing_scope",
        403,
        "The caller's key is for other operations than this one.",
        ("Use a key that has the scope, or ask an administrator for one.", "GET /v1/me shows the scopes of your key."),
    ),
    ProblemKind(
        "token_refused",
        403,
        "The token of a report is unknown or was used before.",
        ("If an earlier reply was lost, the report arrived then. Otherwise ask for another token.",),
    ),
    ProblemKind(
        "not_found",
        404,
        "There is nothing at this address that the caller may see.",
        ("Check the address and the identifier; the lists (GET /v1/...) show what you may see. See /docs.",),
    ),
    ProblemKind(
        "method_not_allowed",
        405,
        "The address exists, and does not offer this method.",
        ("See /docs for the methods of this address.",),
    ),
    ProblemKind(
        "not_acceptable",
        406,
        "The header Accept names no format that this server sends.",
        ("Leave the header Accept out for JSON.",),
    ),
    ProblemKind(
        "request_timeout",
        408,
        "The body arrived too slowly.",
        ("Send the request again, in one piece.",),
        retryable=True,
    ),
    ProblemKind(
        "conflict",
        409,
        "The request contradicts what is already stored.",
        ("Read what is stored (GET), then send a request that fits it.",),
    ),
    ProblemKind(
        "idempotency_conflict",
        409,
        "The Idempotency-Key was used before with another body.",
        ("Use a new Idempotency-Key for a new request.", "Send the same body to get the stored answer."),
    ),
    ProblemKind(
        "query_void",
        409,
        "The query ended without an answer, and without reading a row. Nothing was charged.",
        (
            "Send the query again with a new Idempotency-Key.",
            "If the part above the aggregates can fail (a cast, an overflow), correct it.",
        ),
    ),
    ProblemKind(
        "precondition_failed",
        412,
        "What was to be changed is no longer what the header If-Match names.",
        ("Read it again (GET), decide, and send the change with its new ETag.",),
    ),
    ProblemKind(
        "body_too_large",
        413,
        "The body is larger than the limit.",
        ("Send a smaller body. GET /v1/capabilities shows the limits.",),
    ),
    ProblemKind(
        "unsupported_media_type",
        415,
        "The body is not declared as application/json.",
        ("Send the header Content-Type: application/json.",),
    ),
    ProblemKind(
        "dataset_refused",
        422,
        "The dataset's description or its data contradicts itself.",
        ("Correct the dataset file or the data, and attach it again.",),
    ),
    ProblemKind(
        "rate_limited",
        429,
        "Too many requests in a short time, or the queue is full.",
        ("Wait for the seconds of the header Retry-After, then send it again.",),
        retryable=True,
    ),
    ProblemKind(
        "charge_unknown",
        500,
        "The ledger did not say whether the charge was made, so it counts as made.",
        ("Send the same body with the same Idempotency-Key: it is never charged twice.",),
    ),
    ProblemKind(
        "internal_error",
        500,
        "The server failed. The operator finds the cause by the request id.",
        ("Give the operator the request id.",),
    ),
    ProblemKind(
        "unavailable",
        503,
        "The server cannot work at the moment.",
        ("Try again after the seconds of the header Retry-After.", _OPERATOR),
        retryable=True,
    ),
)

PROBLEMS: dict[str, ProblemKind] = {
    **{
        code: ProblemKind(code, _REFUSAL_STATUS.get(code, 422), meaning, _REFUSAL_INSTEAD[code])
        for code, meaning in CODES.items()
    },
    **{kind.code: kind for kind in _HTTP_KINDS},
}
"""Every problem code with its status: the refusals of `privacy.refusal` and those of HTTP itself."""
