"""The table of aggregate functions: one entry says everything that distinguishes a function.

The parser, the type checker, the reference evaluator, the accumulators of the kernels and the
partial aggregates of the panes all look their part up here. To add a function, add an entry to
`TABLE`, an evaluator (`evaluators.py` or `moments.py`), and, unless an existing one will do, an
accumulator kind in `kernels/accumulators/choice.py`; if its partial results can be merged, also
in `eddy/panes/merging.py`. A test fails if one of them is missing.

FILTER (WHERE …) applies to every aggregate function. None takes ORDER BY: every function sees the
tuples in order of arrival.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from auroral.errors import NetworkError
from auroral.network.types import Type
from auroral.sql.aggregates import evaluators, moments
from auroral.sql.expressions.coercion import BIGINT, BOOLEAN, DOUBLE, STRING, VOID, array_of, shown

if TYPE_CHECKING:
    from auroral.sql.aggregates.evaluators import Evaluator
    from auroral.sql.expressions.typed import Typed

AccumulatorKind = Literal[
    "count",
    "count_if",
    "sum",
    "try_sum",
    "average",
    "least",
    "greatest",
    "first",
    "last",
    "bits",
    "list",
    "set",
    "mode",
    "percentile",
    "moments",
]
"""How the kernels compute a function; `kernels/accumulators/choice.py` has a maker for each."""

NullRule = Literal["skip_any", "skip_last", "keep"]
"""Which rows a function ignores.

- `skip_any`: rows where an argument is NULL
- `skip_last`: rows where the last argument is NULL
- `keep`: none, unless the call says IGNORE NULLS
"""

DistinctRule = Literal["optional", "no_effect", "always"]
"""Whether a function counts equal arguments once: if the call says DISTINCT; DISTINCT does not
change the result; always."""


@dataclass(frozen=True)
class ArgumentRule:
    """The types that a function takes, and how an error message describes them."""

    fits: Callable[[Type], bool]
    expected: str


ANY_TYPE = ArgumentRule(lambda _: True, "a value")
BOOLEANS = ArgumentRule(lambda type: type == BOOLEAN, "a boolean")
NUMBERS = ArgumentRule(lambda type: type.is_numeric, "a number")
WHOLE_NUMBERS = ArgumentRule(lambda type: type.is_integral, "a whole number")

CastRule = Callable[[Type], Type]
"""The type that an argument of a type is cast to before it is checked."""

ResultRule = Callable[[Sequence[Type], tuple[Any, ...]], Type]
"""The type of the result, given the types of the arguments and the constants."""

MergeRule = Callable[[Sequence[Type]], bool]
"""Whether partial results over arguments of these types can be merged without loss."""


def unchanged(type: Type) -> Type:
    return type


def string_to_double(type: Type) -> Type:
    return DOUBLE if type == STRING else type


def to_double(type: Type) -> Type:
    """Strings and decimals; the accumulators and evaluators convert other numbers themselves."""
    return DOUBLE if type == STRING or type.name == "decimal" else type


def void_to_boolean(type: Type) -> Type:
    return BOOLEAN if type == VOID else type


def always(result: Type) -> ResultRule:
    return lambda _types, _constants: result


def type_of_first(types: Sequence[Type], _constants: tuple[Any, ...]) -> Type:
    return types[0]


def array_of_first(types: Sequence[Type], _constants: tuple[Any, ...]) -> Type:
    return array_of(types[0])


def type_of_sum(types: Sequence[Type], _constants: tuple[Any, ...]) -> Type:
    (of,) = types
    if of.is_integral:
        return BIGINT
    return evaluators.decimal_sum_type(of) if of.name == "decimal" else DOUBLE


def type_of_average(types: Sequence[Type], _constants: tuple[Any, ...]) -> Type:
    (of,) = types
    if of.name == "decimal":
        return Type("decimal", min(of.precision + 4, 38), min(of.scale + 4, 38))
    return DOUBLE


def type_of_percentile(_types: Sequence[Type], constants: tuple[Any, ...]) -> Type:
    return array_of(DOUBLE) if isinstance(constants[0], tuple) else DOUBLE


def mergeable(_types: Sequence[Type]) -> bool:
    return True


def not_mergeable(_types: Sequence[Type]) -> bool:
    return False


def mergeable_unless_integral(types: Sequence[Type]) -> bool:
    """`try_sum` of integers is NULL if any prefix overflows, so the order of rows matters."""
    return not types[0].is_integral


def no_constants(_args: Sequence[Typed]) -> tuple[Any, ...]:
    return ()


def fractions_of_percentile(args: Sequence[Typed]) -> tuple[Any, ...]:
    """The second argument: one fraction, or a tuple of fractions."""
    fraction = args[1]
    value = fraction.value() if fraction.constant else None
    several = fraction.type.name == "array"
    items: list[Any] = (value or []) if several else [value]
    if not items or not all(_is_fraction(item) for item in items):
        raise NetworkError(
            "BAD_AGGREGATE",
            "percentile expects a constant between 0 and 1, or an array of them, as second"
            f" argument, found {shown(fraction.type)}",
        )
    return (tuple(map(float, items)) if several else float(items[0]),)


def _is_fraction(value: Any) -> bool:
    if value is None or isinstance(value, bool | str):
        return False
    return math.isfinite(value) and 0 <= value <= 1


@dataclass(frozen=True)
class AggregateFunction:
    """One aggregate function: how it is called, typed and computed."""

    name: str
    """The canonical name, also in the entries of other names."""
    evaluate: Evaluator
    """The reference: the value over the rows that count, in order of arrival."""
    accumulator: AccumulatorKind
    result: ResultRule
    takes: ArgumentRule = ANY_TYPE
    casts: CastRule = unchanged
    arguments: tuple[int, int] = (1, 1)
    """The least and the greatest number of arguments."""
    columns: int | None = None
    """How many arguments are evaluated for each row, None for all; the others are constants."""
    constants: Callable[[Sequence[Typed]], tuple[Any, ...]] = no_constants
    """What the evaluator and the accumulator need of the constant arguments."""
    nulls: NullRule = "skip_any"
    distinct: DistinctRule = "optional"
    compares: bool = False
    """Whether the values of the last argument are compared, also without DISTINCT."""
    merges: MergeRule = not_mergeable
    """Whether panes can merge partial results."""
    aliases: tuple[str, ...] = ()
    """Other names of exactly the same function."""


def _moment(name: str, evaluate: Evaluator, *aliases: str, arguments: int = 1) -> AggregateFunction:
    return AggregateFunction(
        name,
        evaluate,
        "moments",
        always(DOUBLE),
        NUMBERS,
        to_double,
        arguments=(arguments, arguments),
        aliases=aliases,
    )


def _bits(name: str, evaluate: Evaluator, distinct: DistinctRule) -> AggregateFunction:
    return AggregateFunction(
        name,
        evaluate,
        "bits",
        type_of_first,
        WHOLE_NUMBERS,
        distinct=distinct,
        merges=mergeable,
    )


_COUNT = AggregateFunction(
    "count",
    evaluators.count,
    "count",
    always(BIGINT),
    casts=void_to_boolean,
    arguments=(0, 99),  # count(*) has none
    merges=mergeable,
)
_PERCENTILE = AggregateFunction(
    "percentile",
    evaluators.percentile,
    "percentile",
    type_of_percentile,
    NUMBERS,
    to_double,
    arguments=(2, 2),
    columns=1,
    constants=fractions_of_percentile,
)

TABLE = (
    _COUNT,
    AggregateFunction(
        "count_if", evaluators.count_if, "count_if", always(BIGINT), BOOLEANS, merges=mergeable
    ),
    AggregateFunction(
        "sum", evaluators.total, "sum", type_of_sum, NUMBERS, string_to_double, merges=mergeable
    ),
    AggregateFunction(
        "try_sum",
        evaluators.total_that_fits,
        "try_sum",
        type_of_sum,
        NUMBERS,
        string_to_double,
        merges=mergeable_unless_integral,
    ),
    AggregateFunction(
        "avg",
        evaluators.average,
        "average",
        type_of_average,
        NUMBERS,
        string_to_double,
        merges=mergeable,
        aliases=("mean", "try_avg"),
    ),
    AggregateFunction(
        "min",
        evaluators.least,
        "least",
        type_of_first,
        distinct="no_effect",
        compares=True,
        merges=mergeable,
    ),
    AggregateFunction(
        "max",
        evaluators.greatest,
        "greatest",
        type_of_first,
        distinct="no_effect",
        compares=True,
        merges=mergeable,
    ),
    AggregateFunction(
        "min_by",
        evaluators.beside_least,
        "least",
        type_of_first,
        arguments=(2, 2),
        nulls="skip_last",
        distinct="no_effect",
        compares=True,
    ),
    AggregateFunction(
        "max_by",
        evaluators.beside_greatest,
        "greatest",
        type_of_first,
        arguments=(2, 2),
        nulls="skip_last",
        distinct="no_effect",
        compares=True,
    ),
    AggregateFunction(
        "bool_and",
        evaluators.bits_and,
        "least",
        always(BOOLEAN),
        BOOLEANS,
        distinct="no_effect",
        merges=mergeable,
        aliases=("every",),
    ),
    AggregateFunction(
        "bool_or",
        evaluators.bits_or,
        "greatest",
        always(BOOLEAN),
        BOOLEANS,
        distinct="no_effect",
        merges=mergeable,
        aliases=("any", "some"),
    ),
    _bits("bit_and", evaluators.bits_and, "no_effect"),
    _bits("bit_or", evaluators.bits_or, "no_effect"),
    _bits("bit_xor", evaluators.bits_xor, "optional"),
    AggregateFunction(
        "first",
        evaluators.first,
        "first",
        type_of_first,
        arguments=(1, 2),
        columns=1,
        nulls="keep",
        aliases=("any_value", "first_value"),
    ),
    AggregateFunction(
        "last",
        evaluators.last,
        "last",
        type_of_first,
        arguments=(1, 2),
        columns=1,
        nulls="keep",
        aliases=("last_value",),
    ),
    AggregateFunction(
        "collect_list", evaluators.collect_list, "list", array_of_first, aliases=("array_agg",)
    ),
    AggregateFunction("collect_set", evaluators.collect_set, "set", array_of_first, compares=True),
    AggregateFunction(
        "mode", evaluators.mode, "mode", type_of_first, arguments=(1, 2), columns=1, compares=True
    ),
    _PERCENTILE,
    _moment("stddev_samp", moments.stddev_samp, "std", "stddev"),
    _moment("stddev_pop", moments.stddev_pop),
    _moment("var_samp", moments.var_samp, "variance"),
    _moment("var_pop", moments.var_pop),
    _moment("skewness", moments.skewness),
    _moment("kurtosis", moments.kurtosis),
    _moment("corr", moments.corr, arguments=2),
    _moment("covar_pop", moments.covar_pop, arguments=2),
    _moment("covar_samp", moments.covar_samp, arguments=2),
)

VARIANTS: Mapping[str, AggregateFunction] = {
    "approx_count_distinct": replace(_COUNT, arguments=(1, 2), columns=1, distinct="always"),
    "regr_count": replace(_COUNT, arguments=(2, 2)),
    "median": replace(_PERCENTILE, arguments=(1, 1), constants=lambda _: (0.5,)),
}
"""Names that call a function of the table in another way."""

AGGREGATE_FUNCTIONS: Mapping[str, AggregateFunction] = {
    **{name: entry for entry in TABLE for name in (entry.name, *entry.aliases)},
    **VARIANTS,
}
"""Every supported aggregate function, under all of its names."""
