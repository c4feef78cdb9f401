"""Answers of another library to one question: run by that library's own interpreter, called by `benchmarks.peers`.

Reads one JSON object on standard input: the peer, a CSV file with the columns person, k and v, whether v is summed (or
rows are counted), whether there are groups, bounds on the rows of a person (null for what the library does by itself),
and how often to ask with each. Prints {"told": [{"rows": bound, "answers": [{group: number}, ...]}, ...]}, or "refused"
and why instead of answers. Needs nothing of this project.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import sys
import warnings
from typing import Any

EPSILON, DELTA, PARTS = 10.0, 1e-6, 10
"""An account, and into how many answers it is divided."""

MOST_ROWS = 1_000_000
"""More rows than there are, said where a library asks for that."""


def smartnoise(asked: dict[str, Any]) -> list[dict[str, float]]:
    """SmartNoise SQL: an epsilon and a delta for each query, a number of rows for each person (`max_ids`)."""
    pandas, snsql = importlib.import_module("pandas"), importlib.import_module("snsql")
    frame = pandas.read_csv(asked["file"])
    table: dict[str, Any] = {
        "rows": len(frame),
        "censor_dims": False,  # groups are public
        "person": {"type": "int", "private_id": True},
        "k": {"type": "string"},
        "v": {"type": "int", "lower": 0, "upper": 10},
    }
    if asked["rows"] is not None:
        table["max_ids"] = asked["rows"]
    reader = snsql.from_df(
        frame,
        metadata={"": {"d": {"t": table}}},
        privacy=snsql.Privacy(epsilon=EPSILON / PARTS, delta=DELTA / PARTS),
    )
    number = "SUM(v)" if asked["summed"] else "COUNT(*)"
    sql = f"SELECT k, {number} AS n FROM d.t GROUP BY k" if asked["grouped"] else f"SELECT {number} AS n FROM d.t"
    found = []
    for _ in range(asked["runs"]):
        rows = reader.execute(sql)[1:]
        found.append({str(row[0]) if asked["grouped"] else "": float(row[-1]) for row in rows})
    return found


def opendp(asked: dict[str, Any]) -> list[dict[str, float]]:
    """OpenDP on Polars: Gaussian noise, zero-concentrated; the same number of rows for each person, public groups."""
    dp, polars = importlib.import_module("opendp.prelude"), importlib.import_module("polars")
    dp.enable_features("contrib")
    frame = polars.read_csv(asked["file"]).with_columns(polars.col("k").cast(polars.String))
    found = []
    for _ in range(asked["runs"]):
        query = dp.Context.compositor(
            data=frame.lazy(),
            privacy_unit=dp.unit_of(contributions=1, identifier="person"),
            privacy_loss=dp.loss_of(rho=rho_of(dp) / PARTS),
            split_evenly_over=1,
            margins=[dp.polars.Margin(by=[], max_length=MOST_ROWS)],
        ).query()
        if asked["rows"] is not None:
            query = query.truncate_per_group(asked["rows"], keep="first")
        number = polars.col("v").fill_null(0).dp.sum(bounds=(0, 10)) if asked["summed"] else dp.len()
        if asked["grouped"]:
            rows = query.group_by("k").agg(number).with_keys(frame.select("k").unique()).release().collect()
            found.append({str(key): float(value) for key, value in rows.select("k", rows.columns[-1]).iter_rows()})
        else:
            found.append({"": float(query.select(number).release().collect().item())})
    return found


def rho_of(dp: Any) -> float:
    """The zero-concentrated loss of a whole account."""
    low, high = 1e-3, 1e2
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    for _ in range(40):
        scale = (low * high) ** 0.5
        epsilon = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale)).map(1.0).epsilon(DELTA)
        low, high = (scale, high) if epsilon > EPSILON else (low, scale)
    return 1 / (2 * high * high)


PEERS = {"smartnoise-sql": smartnoise, "opendp": opendp}


def main() -> None:
    """Answers the question on standard input; which peers there are, for a question that names none."""
    warnings.filterwarnings("ignore")
    asked = json.load(sys.stdin)
    if "peer" not in asked:
        versions = {}
        for name, module in (("smartnoise-sql", "snsql"), ("opendp", "polars")):
            if importlib.util.find_spec(module) is not None:
                versions[name] = importlib.metadata.version(name)
        print(json.dumps(versions))
        return
    print(
        json.dumps({"told": [{"rows": rows, **answers_or_refusal({**asked, "rows": rows})} for rows in asked["rows"]]})
    )


def answers_or_refusal(asked: dict[str, Any]) -> dict[str, Any]:
    """What a peer says to a question with one bound."""
    try:
        return {"answers": PEERS[asked["peer"]](asked)}
    except Exception as error:  # noqa: BLE001 - whatever a peer raises is its answer
        said = [line.strip() for line in str(error).splitlines() if line.strip()]
        return {"refused": f"{type(error).__name__}: {' '.join(said)[:300]}"}


if __name__ == "__main__":
    main()
