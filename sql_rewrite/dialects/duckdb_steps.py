"""How DuckDB makes whole numbers of steps of the values of rows, and values of steps."""

from __future__ import annotations

from fractions import Fraction

from sql_rewrite.dialects.dialect import writes
from sql_rewrite.dialects.duckdb_scalars import ADDED, DuckDBScalars
from sql_rewrite.layer_values import FineSteps, HeldSteps, NearestSteps, NumberOf, Steps
from sql_rewrite.scalars import Clip

__all__ = ["DuckDBSteps", "double_text"]


class DuckDBSteps(DuckDBScalars, part=True):
    """Rows to integers."""

    @writes(Steps)
    def _steps(self, node: Steps) -> str:
        value = self.write(node.value)
        # TRY_CAST keeps this total and the clip within its ends whatever the value is. GREATEST and LEAST ignore
        # NULL, so NULL is kept out of them.
        steps = (
            f"TRY_CAST(ROUND((CAST({value} AS DOUBLE) - {double_text(float(node.offset))}) / "
            f"{double_text(float(node.step))}) AS BIGINT)"
        )
        inside = f"GREATEST({node.lowest}, LEAST({steps}, {node.highest}))"
        # A clip is NULL where its value is: the engine would compute both that and the value.
        tested = self.operand(node.value.value, ADDED) if isinstance(node.value, Clip) else value
        return f"CASE WHEN {tested} IS NULL THEN NULL ELSE {inside} END"

    @writes(NearestSteps)
    def _nearest_steps(self, node: NearestSteps) -> str:
        """A quotient by a power of two is the product with its reciprocal, digit for digit, in less time."""
        number = f"CAST({self.write(node.value)} AS DOUBLE)"
        if node.offset:
            number = f"({number} - {double_text(float(node.offset))})"
        if _is_power_of_two(node.step):
            return f"ROUND({number} * {double_text(float(1 / node.step))})"
        return f"ROUND({number} / {double_text(float(node.step))})"

    @writes(HeldSteps)
    def _held_steps(self, node: HeldSteps) -> str:
        """NULL is in none of the branches. The engine orders what is not a number above all numbers."""
        steps, low, high = self.write(node.steps), double_text(float(node.lowest)), double_text(float(node.highest))
        if node.centred:
            middle, half = (node.lowest + node.highest) / 2, (node.highest - node.lowest) / 2
            beyond = f"abs({steps} - {double_text(middle)}) > {double_text(half)}"
            end = f"CASE WHEN {steps} < {low} THEN {low} ELSE {high} END"
            return f"CAST(CASE WHEN {beyond} THEN {end} ELSE {steps} END AS BIGINT)"
        return (
            f"CAST(CASE WHEN {steps} < {low} THEN {low} WHEN {steps} > {high} THEN {high} ELSE {steps} END AS BIGINT)"
        )

    @writes(FineSteps)
    def _fine_steps(self, node: FineSteps) -> str:
        value = self.write(node.value)
        limit = double_text(float(node.limit * node.step))
        # GREATEST and LEAST ignore NULL. A quotient by a power of two is exact, and so is the cast of a whole double.
        held = f"GREATEST(-{limit}, LEAST({value}, {limit}))"
        whole = f"CAST(ROUND({held} / {double_text(float(node.step))}) AS HUGEINT)"
        return f"CASE WHEN {value} IS NULL THEN NULL ELSE {whole} END"

    @writes(NumberOf)
    def _number_of(self, node: NumberOf) -> str:
        """Of the size, whose 53 digits are kept: the cast of a negative integer below -2^64 rounds its two halves."""
        steps = self.write(node.steps)
        size = f"CASE WHEN {steps} < 0 THEN - CAST(- {steps} AS DOUBLE) ELSE CAST({steps} AS DOUBLE) END"
        return f"({size}) * {double_text(float(node.step))}"


def _is_power_of_two(value: Fraction) -> bool:
    return value.numerator.bit_count() == 1 and value.denominator.bit_count() == 1


def double_text(value: float) -> str:
    """A double literal that reads back to the same number."""
    return f"CAST('{value!r}' AS DOUBLE)"
