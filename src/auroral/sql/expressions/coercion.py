"""Which type Spark gives an expression when ANSI mode is off (its `TypeCoercion` rules)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from auroral.network.types import Field, Type

VOID = Type("void")
BOOLEAN, INT, BIGINT = Type("boolean"), Type("int"), Type("bigint")
FLOAT, DOUBLE, STRING, BINARY = Type("float"), Type("double"), Type("string"), Type("binary")
DATE, TIMESTAMP, TIMESTAMP_NTZ = Type("date"), Type("timestamp"), Type("timestamp_ntz")
MONTHS = Type("interval_ym")
DAY_TO_SECOND = Type("interval_dt", 0, 3)
NUMERIC_ORDER = ("tinyint", "smallint", "int", "bigint", "float", "double")
TIMES = ("date", "timestamp", "timestamp_ntz")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_INTERVAL_FIELDS = ("day", "hour", "minute", "second")


def shown(type: Type) -> str:
    """The type's name as Spark shows it, intervals too."""
    if type.name == "interval_ym":
        return "interval year to month"
    if type.name == "interval_dt":
        ends = [_INTERVAL_FIELDS[type.precision], _INTERVAL_FIELDS[type.scale]]
        return f"interval {' to '.join(dict.fromkeys(ends))}"
    return str(type)


def is_atomic(type: Type) -> bool:
    return type.name not in ("array", "map", "struct", "void")


def is_interval(type: Type) -> bool:
    return type.name.startswith("interval")


def array_of(element: Type) -> Type:
    return Type("array", children=(Field("element", element),))


def decimal_for(type: Type) -> Type:
    """The decimal that holds every value of an integral type."""
    return Type("decimal", _DIGITS[type.name]) if type.is_integral else type


def adjusted(precision: int, scale: int) -> Type:
    """A decimal of at most 38 digits; digits before the point are kept, at least 6 after it."""
    if precision <= 38:
        return Type("decimal", precision, scale)
    return Type("decimal", 38, max(38 - (precision - scale), min(scale, 6)))


def wider_decimal(a: Type, b: Type) -> Type:
    """The decimal that holds both, cut to 38 digits in favour of those before the point."""
    scale = max(a.scale, b.scale)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    if whole + scale <= 38:
        return Type("decimal", whole + scale, scale)
    return Type("decimal", 38, max(0, scale - (whole + scale - 38)))


def tightest(a: Type, b: Type) -> Type | None:
    """`findTightestCommonType`: a type that holds both without loss, strings never widened to."""
    if a == b or b == VOID:
        return a
    if a == VOID:
        return b
    for whole, exact in ((a, b), (b, a)):
        if whole.is_integral and exact.name == "decimal":
            if exact.precision - exact.scale >= _DIGITS[whole.name]:
                return exact
            return None
    if a.name in NUMERIC_ORDER and b.name in NUMERIC_ORDER:
        return max(a, b, key=lambda type: NUMERIC_ORDER.index(type.name))
    if a.name in TIMES and b.name in TIMES:
        return TIMESTAMP if TIMESTAMP in (a, b) else TIMESTAMP_NTZ
    if a.name == b.name == "interval_dt":
        return Type("interval_dt", min(a.precision, b.precision), max(a.scale, b.scale))
    return _structure(a, b, tightest)


def _structure(a: Type, b: Type, find: Callable[[Type, Type], Type | None]) -> Type | None:
    if a.name != b.name or a.name not in ("array", "map", "struct"):
        return None
    if len(a.children) != len(b.children):
        return None
    parts: list[Field] = []
    for left, right in zip(a.children, b.children, strict=True):
        found = find(left.type, right.type)
        if found is None or left.name.lower() != right.name.lower():
            return None
        parts.append(Field(left.name, found))
    return Type(a.name, children=tuple(parts))


def _for_decimal(a: Type, b: Type) -> Type | None:
    if "decimal" not in (a.name, b.name) or not (a.is_numeric and b.is_numeric):
        return None
    if {a.name, b.name} & {"float", "double"}:
        return DOUBLE
    return wider_decimal(decimal_for(a), decimal_for(b))


def wider_without_strings(a: Type, b: Type) -> Type | None:
    return tightest(a, b) or _for_decimal(a, b) or _structure(a, b, wider_without_strings)


def wider(a: Type, b: Type) -> Type | None:
    """`findWiderTypeForTwo`: as above, but a string next to any other atom gives string."""
    found = tightest(a, b) or _for_decimal(a, b)
    if found is None and STRING in (a, b):
        other = b if a == STRING else a
        if is_atomic(other) and other.name not in ("binary", "boolean"):
            return STRING
    return found or _structure(a, b, wider)


def common(types: Sequence[Type]) -> Type | None:
    """The type of CASE, coalesce, IN and array(): strings first, then one by one."""

    def stringy(type: Type) -> bool:
        return type == STRING or (type.name == "array" and stringy(type.children[0].type))

    return _fold(wider, [*filter(stringy, types), *(t for t in types if not stringy(t))])


def common_without_strings(types: Sequence[Type]) -> Type | None:
    """The type of greatest and least."""
    return _fold(wider_without_strings, types)


def _fold(find: Callable[[Type, Type], Type | None], types: Iterable[Type]) -> Type | None:
    found: Type | None = VOID
    for type in types:
        found = None if found is None else find(found, type)
    return found


def comparable(a: Type, b: Type, *, equality: bool) -> Type | None:
    """The type both sides of a comparison are cast to, None if they cannot be compared."""
    if a == VOID and b == VOID:
        return VOID
    if STRING in (a, b) and a != b:
        other = b if a == STRING else a
        if other == VOID:
            return STRING
        if other.name == "decimal" and other.scale > 0:
            return DOUBLE
        return other if is_atomic(other) and not is_interval(other) else None
    if equality and BOOLEAN in (a, b) and (a.is_numeric or b.is_numeric):
        return b if a == BOOLEAN else a
    if a.is_numeric and b.is_numeric:
        return _for_decimal(a, b) or tightest(a, b)
    if a.name == b.name == "struct" and _parts(a) == _parts(b):
        return a
    return tightest(a, b)


def _parts(type: Type) -> object:
    """The type without the names of its fields, which comparisons ignore."""
    return [_parts(child.type) for child in type.children] if type.children else type


def implicit(source: Type, wanted: str | Type) -> Type | None:
    """The type a function's argument is cast to: `wanted` is a type or one of Spark's families.

    Families: numeric, integral, decimal, any, and several joined by `|`, the first that fits.
    """
    if isinstance(wanted, Type):
        return _implicit_to(source, wanted)
    names = wanted.split("|")
    if any(_accepts(name, source) for name in names):
        return source
    for name in names:
        found = _implicit_family(source, name)
        if found is not None:
            return found
    return None


def _accepts(family: str, source: Type) -> bool:
    if family == "any":
        return True
    if family == "numeric":
        return source.is_numeric
    if family == "integral":
        return source.is_integral
    if family == "interval":
        return is_interval(source)
    return source.name == family


def _implicit_family(source: Type, family: str) -> Type | None:
    if family in ("numeric", "integral"):
        if source == VOID:
            return DOUBLE if family == "numeric" else INT
        return DOUBLE if source == STRING and family == "numeric" else None
    if family == "decimal":
        if source in (VOID, STRING):
            return Type("decimal", 38, 18) if source == STRING else Type("decimal", 10)
        return decimal_for(source) if source.is_integral else None
    if family in ("array", "map", "struct", "interval"):
        return None
    return _implicit_to(source, Type(family))


def _implicit_to(source: Type, to: Type) -> Type | None:
    if source in (to, VOID):
        return to
    if source.is_numeric and to.is_numeric:
        return to
    if source.name in TIMES and to.name in TIMES:
        return to
    if source == STRING and (to.is_numeric or to.name in TIMES or to == BINARY):
        return to
    if to == STRING and is_atomic(source) and not is_interval(source):
        return to
    if source.name == to.name == "array":
        element = _implicit_to(source.children[0].type, to.children[0].type)
        return None if element is None else array_of(element)
    return None
