"""What is refused for its price, with what could be asked instead. The numbers come from `pricing`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from accountant.account import Account
from mechanisms.calibrate import UNKNOWN_WIDTH, UNPROMISED_WIDTH
from mechanisms.families import FAMILIES, ONE_GROUP, NoiseFamily
from privacy.numbers import decimal_text
from privacy.policy import Dataset
from privacy.refusal import Finding, Refused

__all__ = [
    "above_max_cost",
    "above_policy",
    "delta_above_policy",
    "floor_above_policy",
    "size_not_known",
    "spend_below_floor",
    "too_exact",
    "unreachable",
    "width_not_known",
]

_LARGER = "ask an administrator for a larger budget, or for a smaller epsilon_min"


def delta_above_policy(most: Fraction) -> Refused:
    """Of a delta above that of one query."""
    return _forbidden(
        what="the asked delta is refused",
        why=f"One query of this dataset may use at most delta {decimal_text(most)}.",
        instead=(f'"delta": "{decimal_text(most)}", or less', "leave delta out for the dataset's own"),
    )


def spend_below_floor(
    nominal: Fraction, own: Fraction | None, *, most: Fraction, by_name: NoiseFamily | None = None
) -> Refused:
    """Of a spend below the floor, where `nominal` is the least; `own` is that of the answer itself if that was asked.

    `most` is the greatest nominal epsilon of one query. `by_name` is noise that makes what was asked, if it is named.
    """
    other: tuple[str, ...] = ()
    if by_name is not None:
        text = f"costs more than the least price, and promises this own_epsilon by {by_name.value} noise"
        other = (f'"noise": "{by_name.value}", or --noise {by_name.value}, which {text}',)
    if nominal > most:
        instead = _LARGER
    elif own is not None:
        instead = f'"spend": {{"own_epsilon": "{decimal_text(own)}"}}, or --own-epsilon {decimal_text(own)}'
    else:
        instead = f'"spend": {{"epsilon": "{decimal_text(nominal)}"}}, or --epsilon {decimal_text(nominal)}'
    return _forbidden(
        what="the asked spend is refused",
        why="It is below the least price of an answer that reads rows: on this account epsilon "
        f"{decimal_text(nominal)} for this question.",
        instead=(instead, *other, "ask for an accuracy in place of a spend: the price follows from it"),
    )


def above_policy(leaf: Account, dataset: Dataset, *, own: bool) -> Refused:
    """Of a spend above that of one query. `own` says that it was asked in the epsilon of the answer itself."""
    text = f"{float(dataset.limits.epsilon_max):.6g}"
    return _forbidden(
        what="the asked spend is refused",
        why=f"One query of this dataset may spend at most epsilon {text} of the account that pays, here of "
        f"{decimal_text(leaf.limit.epsilon)}." + (" The asked own_epsilon needs more." if own else ""),
        instead=(f'"spend": {{"epsilon": "{text}"}}, or --epsilon {text} on a command line',),
    )


def above_max_cost(cost: Fraction, most: Fraction) -> Refused:
    """Of a question that would take more of the paying account than the request allows."""
    return _refused(
        code="above_max_cost",
        what="the question is refused at its price",
        why=f"It would take epsilon {_up(cost)} of the paying account, and its max_cost is {decimal_text(most)}. "
        "Nothing was charged.",
        instead=(
            "ask for less: a smaller spend, or a wider accuracy",
            f"allow more: a max_cost of at least {_up(cost)}",
        ),
    )


def _up(cost: Fraction) -> str:
    """A cost as the least number of six digits after the point that is not below it."""
    return decimal_text(Fraction(math.ceil(cost * 10**6), 10**6))


def floor_above_policy(least: Fraction, dataset: Dataset) -> Refused:
    """Of a query whose least price is above that of one query."""
    return _forbidden(
        what="the query is refused",
        why=f"The least price of an answer that reads rows is epsilon {float(least):.6g} of this account, and "
        f"one query may spend at most {float(dataset.limits.epsilon_max):.6g}.",
        instead=(_LARGER,),
    )


def too_exact(epsilon: Fraction, greatest: Fraction) -> Refused:
    """Of an accuracy that needs this epsilon, more than the greatest that the query may spend."""
    most = f"{float(greatest):.6g}"
    return _refused(
        code="accuracy_unreachable",
        what="the asked accuracy is refused",
        why=f"It needs epsilon {float(epsilon):.6g}; the query may spend at most {most}.",
        instead=(
            f'ask for a wider half_width; the narrowest stands in an estimate with "spend": {{"epsilon": "{most}"}} '
            f"(or --epsilon {most})",
            "ask for fewer statistics at once",
        ),
    )


def width_not_known() -> Refused:
    """Of a half width where noisy numbers choose rows of groups that are not public."""
    return _refused(
        code="accuracy_unreachable",
        what="the asked half_width is refused",
        why="Noisy numbers choose the rows of the answer, so its intervals hold for all groups at once. How many "
        "groups are shown is not known before the answer, so no width can be promised.",
        instead=(
            'name a spend: "spend": {"epsilon": "..."}, or --epsilon',
            "leave out the condition on noisy numbers, or LIMIT, and choose among the rows of the answer",
            "group by public keys",
        ),
    )


_PROFILE = "ask the owner for a profile of the data: noisegate dataset profile NAME --epsilon 0.1"


def size_not_known(why: str, *, profiled: bool) -> Refused:
    """Of a relative width where nothing released says how large the numbers are; `profiled`: there is a profile."""
    return _refused(
        code="accuracy_unreachable",
        what="the asked relative accuracy is refused",
        why=why,
        instead=(
            'ask for a width in the unit of the column: "accuracy": {"half_width": "..."}, or --half-width',
            "ask once with a spend: the stored release then says how large the numbers are",
            *(() if profiled else (_PROFILE,)),
        ),
    )


def unreachable(reasons: Sequence[str]) -> Refused:
    """Of a query that no family of noise can answer, for these reasons."""
    return _refused(
        code="accuracy_unreachable",
        what="the query cannot be priced",
        why=_sentence("; ".join(dict.fromkeys(reasons)) or "No kind of noise fits it"),
        instead=_advice(reasons),
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _advice(reasons: Sequence[str]) -> tuple[str, ...]:
    """What helps against the reasons: no spend changes the kinds of noise that an account has."""
    public, administrator = (
        "group by public keys, which need no delta",
        "ask an administrator for an account with a delta",
    )
    spend = 'name a "spend" in place of the "accuracy" (--epsilon): the answer then has its ±'
    if UNKNOWN_WIDTH in reasons:
        return (spend,)
    if any(reason.startswith(UNPROMISED_WIDTH) for reason in reasons):
        return ("ask for a wider half_width", spend)
    unselected = any(family.unselected in reasons for family in FAMILIES.values())
    unpaid = any(family.currency.unpaid in reasons for family in FAMILIES.values())
    if unselected and unpaid:
        return (public, administrator)
    if unselected:
        one_group = ('"contribution": {"groups_per_unit": 1}, or --groups-per-unit 1',) if ONE_GROUP in reasons else ()
        return ('leave "noise" (--noise) out: Gaussian noise selects such groups', *one_group, public)
    if unpaid:
        return ('leave "noise" (--noise) out: Laplace noise answers it', administrator)
    return ("spend more epsilon", public, "ask for less at once")


def _forbidden(*, what: str, why: str, instead: tuple[str, ...]) -> Refused:
    return _refused(code="policy_forbids", what=what, why=why, instead=instead)


def _refused(*, code: str, what: str, why: str, instead: tuple[str, ...]) -> Refused:
    return Refused([Finding(code=code, what=what, why=why, instead=instead)])
