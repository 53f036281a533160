"""Refuse what a scalar expression must not use: aggregates, windows, generators, the clock."""

from __future__ import annotations

from auroral.errors import NetworkError, closest
from auroral.network.types import Schema
from auroral.sql.aggregates.functions import AGGREGATE_FUNCTIONS
from auroral.sql.expressions.syntax import Call, Name, Node, walk

_ONLY_SPARK = frozenset(
    """
    approx_percentile approx_top_k bitmap_and_agg bitmap_construct_agg bitmap_or_agg
    count_min_sketch grouping grouping_id histogram_numeric hll_sketch_agg hll_union_agg listagg
    percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_intercept regr_r2
    regr_slope regr_sxx regr_sxy regr_syy schema_of_json_agg string_agg
    """.split()  # noqa: SIM905
)
AGGREGATES = _ONLY_SPARK | frozenset(AGGREGATE_FUNCTIONS)
"""The names of all aggregate functions, also of those that only Spark has."""
WINDOWS = frozenset(
    """
    cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number window
    session_window window_time
    """.split()  # noqa: SIM905
)
GENERATORS = frozenset(
    """
    explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack
    variant_explode variant_explode_outer
    """.split()  # noqa: SIM905
)
# Different at each evaluation, from the clock, or from where Spark happens to run.
UNSTABLE = frozenset(
    """
    aes_encrypt curdate current_catalog current_database current_date current_path current_schema
    current_time current_timestamp current_timezone current_user input_file_block_length
    input_file_block_start input_file_name java_method localtime localtimestamp
    monotonically_increasing_id now rand randn random randstr reflect session_user shuffle
    spark_partition_id try_reflect uniform user uuid version
    """.split()  # noqa: SIM905
)
# Functions that have no value and can only fail.
_FAILING = frozenset(("assert_true", "raise_error"))
# Spark reads these words without parentheses too, unless a field has the name.
_BARE = UNSTABLE & frozenset(
    """current_catalog current_database current_date current_time current_timestamp current_user
    localtime localtimestamp session_user user""".split()  # noqa: SIM905
)


def refuse(tree: Node, schema: Schema) -> None:
    """Raise for the first node that is not a deterministic scalar."""
    for node in walk(tree):
        if isinstance(node, Call):
            _refuse_call(node)
        elif isinstance(node, Name) and node.name.lower() in _BARE and node.name not in schema:
            raise _unstable(node.name)


def refuse_nested(argument: Node, aggregate: str) -> None:
    """Raise for an aggregate within an aggregate."""
    for node in walk(argument):
        if isinstance(node, Call) and node.name in AGGREGATES:
            raise NetworkError(
                "AGGREGATE",
                f"expected a scalar expression in {aggregate}(…), found the aggregate {node.name}",
                hint="compute the inner one in an aggregate box of its own",
            )


def _refuse_call(call: Call) -> None:
    name = call.name
    if name in AGGREGATES:
        raise NetworkError(
            "AGGREGATE",
            f"expected a scalar expression, found the aggregate {name}",
            hint="use an aggregate box, whose compute takes aggregates",
        )
    if call.clauses is not None:
        raise NetworkError(
            "AGGREGATE",
            f"DISTINCT, FILTER and IGNORE NULLS go with aggregates; {name} is none",
        )
    if name in WINDOWS:
        raise NetworkError(
            "WINDOW_FUNCTION",
            f"expected a scalar expression, found the window function {name}",
            hint="use an aggregate box with a window",
        )
    if name in GENERATORS:
        raise NetworkError(
            "GENERATOR",
            f"expected one value per tuple, found the generator {name}",
            hint="a map gives one tuple for each tuple; use a read box for several",
        )
    if name in _FAILING:
        raise NetworkError(
            "UNSUPPORTED_EXPRESSION",
            f"the function {name} is not supported: it has no value, it only fails",
            hint="select the tuples that are wrong, and look at them",
        )
    clock = name in ("unix_timestamp", "to_unix_timestamp") and not call.args
    if name in UNSTABLE or clock:
        raise _unstable(name)


def _unstable(name: str) -> NetworkError:
    return NetworkError(
        "NON_DETERMINISTIC",
        f"expected a value that depends on the tuple alone, found {name}",
        hint="results must not change when a run is repeated; put the value into the stream",
    )


def subquery() -> NetworkError:
    return NetworkError(
        "SUBQUERY",
        "expected a scalar expression, found a subquery",
        hint="join the streams with a join box, or write a continuous query",
    )


def star(function: str | None = None) -> NetworkError:
    """The error for `*`; a function whose name resembles `count` is taken for a misspelling."""
    if function is not None and closest(function, ("count",)):
        return NetworkError(
            "UNKNOWN_FUNCTION",
            f"there is no {function} that takes *",
            hint=closest(function, ("count",)),
        )
    return NetworkError(
        "STAR",
        "expected a scalar expression, found *",
        hint="name the field; a map keeps all fields with keep: '*'",
    )
