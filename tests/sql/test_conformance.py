"""Types and values of hundreds of expressions, against Spark."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from auroral.errors import NetworkError
from auroral.network.types import Schema
from auroral.sql.expressions.expression import analyze

_NUMBERS = ["ty", "sm", "i", "l", "f", "d", "dec", "big"]
_ATOMS = ["b", *_NUMBERS, "s", "n", "bin", "day", "t", "tn"]


def arithmetic() -> list[str]:
    pairs = [(a, c) for a in _NUMBERS for c in ("sm", "j", "l", "f", "e", "dec", "big", "n")]
    found = [f"{a} {op} {c}" for a, c in pairs for op in ("+", "-", "*", "/", "%")]
    found += [f"{a} div {c}" for a in ("ty", "i", "l", "dec", "big") for c in ("j", "l", "dec")]
    found += [f"pmod({a}, {c})" for a in _NUMBERS for c in ("j", "e", "dec")]
    found += [f"-{a}" for a in _NUMBERS if a != "big"] + ["-if(big < 0, big, null)"]
    found += [f"abs({a})" for a in _NUMBERS]
    found += [f"{a} {op} 3" for a in _NUMBERS for op in ("+", "*", "/", "%", "-")]
    found += [f"{a} {op} 2.5" for a in _NUMBERS for op in ("+", "*", "/", "%", "-")]
    found += [f"{op}" for op in ("n + n", "n * 2", "s + 1", "-n", "+i", "+n", "n / n", "n % 2")]
    found += [f"{a} {op} {c}" for a in ("ty", "i", "l") for c in ("sm", "l") for op in "&|^"]
    found += ["~ty", "~i", "~l", "shiftleft(i, j)", "shiftright(l, j)", "i << 3", "l >> ty"]
    found += ["shiftrightunsigned(i, 3)", "l >>> 70", "ty << 1", "i | j & 3", "i ^ j | 1 & l"]
    found += ["1 / 0", "0.0 / 0", "5 div 0", "5 % 0", "-5 % 3", "-5.5 % 3", "2147483647 + 1"]
    found += ["-2147483648", "-2147483648 - 1", "9223372036854775807L + 1", "127Y + 1Y", "1e3"]
    found += ["12345678901234567890", "-12345678901234567890123456789012345678", "1" * 29]
    found += ["1.0 / 3", "1.5BD * 2", "1.5f + 1", "1.5D", ".5 + 1.", "7S"]
    found += ["null + 1", "i + null", "dec * null", "2 - -3", "- - 3", "mod(i, j)", "0.00"]
    return found


def comparisons() -> list[str]:
    numeric = [f"{a} {op} {c}" for a in _NUMBERS for c in _NUMBERS for op in ("=", "<")]
    same = [f"{a} {op} {a}" for a in _ATOMS for op in ("=", "<=>", ">=", "<>")]
    text = [f"{a} {op} n" for a in _ATOMS if a != "bin" for op in ("=", "<", "<=>")]
    literals = [f"{a} {op} '1'" for a in _NUMBERS for op in ("=", ">", "<=")]
    literals += [f"{a} {op} 1.5" for a in _NUMBERS for op in ("=", ">", "<=")]
    more = """
    b = 1 | b = 0 | b <=> 1 | b = 2 | b = i | 1 = b | b = 1.0 | b = 'true' | b = 'y' | b < true
    d = double('NaN') | d > e | d <= e | d <=> e | f = d | greatest(d, e) | least(d, e)
    day = t | day < t | t = tn | tn < day | t > '2024-01-01' | '2024-01-01' > t | day = '2024-02-29'
    day >= '2024' | t = '1970-01-01T00:00:00Z' | t < '2024-02-29 12:34:56.789013' | day = 'oops'
    st = st | st < struct(1, 'z') | arr = array(1, 2, null) | arr < array(2) | arr <=> arr
    i in (1, 2, 3) | i in (3, null) | i not in (1, null) | s in ('abc', 'x') | i in ('3', '4')
    d in (2.5, 0) | l in (5, 5.0) | day in ('2024-02-29') | dec in (12.34, 7.5) | n in (12, 13)
    i between 0 and 5 | i not between 0 and 5 | d between e and 3 | s between 'a' and 'b'
    day between '2024-01-01' and '2024-12-31' | i is null | i is not null | b is true
    b is not true
    b is false | b is not false | b is unknown | b is not unknown | i is distinct from j
    i is not distinct from j | null = 1 | null <=> null | null = null | null is null | i <=> null
    b and i > 0 | b or i > 0 | not b | not (b and null) | null and b | null or b | !b | not not b
    b and null | i > 0 and null or b | i = j = b | i > 1 = b | i = 1 or i = 2 and b
    i == 3 | i != 3 | i !< 3 | i !> 3 | s = s || '' | s > 'B' | bin = 'abc' | bin > X'00'
    isnull(i)
    isnotnull(i) | 0.0 = -0.0 | d = -0.0 | equal_null(i, j) | i = 3 is null | not i = 3 is null
    """
    return numeric + same + text + literals + split(more)


def choices() -> list[str]:
    return split("""
    case when i > 0 then 'p' when i < 0 then 'm' else 'z' end
    case i when 3 then 1 when 0 then 2 end
    case when b then 1 else 2.5 end | case when b then i else d end
    case when b then 1 else 'x' end
    case when b then null else i end | case s when 'abc' then 1L end
    case when b then day else t end | case when b then dec else l end
    case when b then f else l end
    case i when '3' then 'three' else i end | if(b, 1, 2) | if(b, 1, null) | if(i > 1, s, i)
    if(null, 1, 2) | if(b, dec, big) | coalesce(i, j) | coalesce(i, l, 1.5) | coalesce(null, s)
    coalesce(i, s) | coalesce(day, t) | nvl(i, 0) | nvl(s, 'none') | ifnull(d, 0)
    nvl2(i, 'a', 'b')
    nvl2(i, 1, 2.5) | nullif(i, 3) | nullif(s, '') | nullif(d, 0) | nullif(i, '3') | greatest(i, j)
    greatest(i, l, d) | least(i, j) | least(dec, i) | greatest(s, u) | least(day, day2)
    greatest(f, i)
    greatest(day, t) | least(dec, big) | greatest(i, null) | greatest(dec, d) | nullif(dec, 12.34)
    coalesce(dec, i) | coalesce(f, i) | coalesce(ty, sm) | coalesce(t, tn)
    case when i > 0 then arr else array(1L) end | if(b, st, struct(1 as a, 'q' as b))
    """)


def casts() -> list[str]:
    types = ["boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(5,1)"]
    types += ["decimal(38,10)", "string"]
    numbers = ["b", *_NUMBERS, "s", "n", "u"]
    found = [f"cast({a} as {to})" for a in [*numbers, "t", "day"] for to in types]
    found += [f"try_cast({a} as {to})" for a in numbers for to in types]
    found += [f"try_cast(t as {to})" for to in types[1:]]
    found += [f"cast({a} as {to})" for a in ("s", "n", "u", "day", "t", "tn") for to in
              ("date", "timestamp", "timestamp_ntz", "string")]  # fmt: skip
    found += [f"cast({a} as timestamp)" for a in ("b", "ty", "sm", "j", "e", "dec", "ty / 4")]
    found += [f"cast({a} as binary)" for a in ("s", "u", "ty", "sm", "i", "l")]
    texts = """
    '1' | ' 1 ' | '1.9' | '-1.9' | '.' | '+.' | '-' | '' | '.5' | '1e2' | '0x10' | '1L' | '1d'
    'nan'
    '-Infinity' | 'INF' | '+inf' | '300' | '2147483648' | '1_000' | '１' | 't' | 'YES' | 'N' | 'on'
    '1.7976931348623159e308' | '1e-400' | '123456789012345678901234567890123456789' | '-0'
    '00012.500'
    """
    for text in split(texts):
        found += [f"cast({text} as {to})" for to in types]
        found += [
            f"try_cast({text} as {to})" for to in ("int", "double", "boolean", "decimal(5,1)")
        ]
    moments = """
    '2024' | '2024-2' | '2024-02-29' | '2023-02-29' | '2024-02-29x' | '2024-02-29 x' | '2024-2-9T1'
    ' 2024-02-29 ' | '24-01-01' | '2024-13-01' | '2024-02-29 1:2:3' | '2024-02-29 25:00:00'
    '2024-02-29 12' | '2024-02-29 12:34' | '2024-02-29T12:34:56Z' | '2024-02-29 12:34:56.1234567'
    '2024-02-29 12:34:56+01:00' | '2024-02-29 12:34:56 America/New_York'
    '2024-02-29 12:34:56.5 PST'
    '2024-02-29 12:34:56 GMT+2' | '2024-02-29 12:34:56-8:30' | '2024-02-29 12:34:56 Nowhere/No' | ''
    '2024-02-29T' | '2024-02-29 12:34Z' | '+2024-02-29' | '2024-02-29 12:34:56.' | '2024/02/29'
    '2024-02-29 12:34:60' | '2024-03-10 02:30:00 America/Los_Angeles' | '2024-02-29 12:34:56 UTC+5'
    """
    for text in split(moments):
        found += [f"cast({text} as {to})" for to in ("date", "timestamp", "timestamp_ntz")]
    return found + split("""
    i::string | i::double + 1 | -1::string | 'a'::binary | null::int | cast(null as date) | d::float
    cast(arr as string) | cast(st as string) | cast(m as string) | cast(arr as array<string>)
    cast(arr as array<tinyint>) | cast(st as struct<x:bigint,y:string>) | cast(1.0e7 as string)
    cast(12345678.9 as string) | cast(0.0000001BD as string) | cast(1e-5 as string)
    cast(big as string)
    cast(d as decimal(38,18)) | cast(1.15 as decimal(3,1)) | cast(-1.15 as decimal(3,1))
    cast(X'616263' as string)
    cast(0.1f as double) | cast(16777217 as float) | cast(9007199254740993 as float)
    cast(l as float)
    cast(1e20 as int) | cast(1e20 as tinyint) | cast(-1e20 as bigint) | cast(300 as tinyint)
    cast(m as map<string,bigint>)
    cast(123456789.987 as tinyint) | cast(100000000 as float) | cast(1.1f as string) | double(s)
    int(n) | string(i)
    bigint(n) | date(s) | timestamp(s) | boolean(n) | float(n) | decimal(n) | tinyint(i)
    smallint(i) | binary(s)
    """)


def math_functions() -> list[str]:
    one = ["sqrt", "cbrt", "exp", "ln", "log", "log10", "log2", "log1p", "expm1", "sin", "cos"]
    one += ["tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "sign", "signum", "degrees"]
    one += ["radians", "ceil", "floor", "ceiling", "round", "bround", "isnan", "rint", "atanh"]
    found = [f"{name}({a})" for name in one for a in ("e", "i", "dec", "f", "n")]
    found += [f"sin({a})" for a in ("j", "ty", "f * 0.1")]
    found += [f"{name}({a}, {k})" for name in ("round", "bround") for a in _NUMBERS
              for k in (0, 1, 2, -1, -2)]  # fmt: skip
    return found + split("""
    power(d, 2) | pow(i, 0.5) | pow(-8, 1.0/3) | pow(0, -1) | pow(e, d) | pow(-2, 3)
    pow(1, double('NaN'))
    pow(-1, double('inf')) | atan2(e, d) | atan2(j, i) | hypot(3, 4) | hypot(d, e) | log(2, 8)
    log(10, i)
    log(1, 5) | log(dec, 2) | log(0, 1) | nanvl(d, e) | nanvl(f, 0f) | nanvl(d, f) | pi() | e()
    isnan(null)
    round(2.5) | round(-2.5) | bround(2.5) | bround(3.5) | round(1.005, 2) | round(0.5f)
    round(125, -1)
    round(2147483647, -1) | round(127Y, -1) | bround(25, -1) | round(1.25, 5) | ceil(-0.5)
    floor(-0.5)
    ceil(1e19) | floor(-1e19) | ceil(5L) | round(-0.4) | round(double(-0.4)) | abs(-2147483648)
    abs(n)
    pmod(-7, 3) | pmod(-7, -3) | pmod(7, -3) | pmod(-7.5, 2) | pmod(i, 0) | mod(7, -3) | sqrt(-1)
    ln(0)
    """)


def text_functions() -> list[str]:
    one = ["upper", "lower", "length", "char_length", "trim", "ltrim", "rtrim", "reverse", "ascii"]
    one += [
        "initcap",
        "md5",
        "sha1",
        "crc32",
        "hex",
        "ucase",
        "lcase",
        "octet_length",
        "bit_length",
    ]
    found = [f"{name}({a})" for name in one for a in ("s", "u", "n")]
    found += [f"substring({a}, {p}, {c})" for a in ("s", "u", "bin") for p in (-3, -20, 0, 1, 2, 9)
              for c in (-1, 0, 2, 100)]  # fmt: skip
    found += [f"{name}({a}, {k})" for name in ("left", "right", "repeat") for a in ("s", "u")
              for k in (-1, 0, 2, 50)]  # fmt: skip
    found += [f"{name}({a}, {k}, {p})" for name in ("lpad", "rpad") for a in ("s", "u")
              for k in (-1, 0, 2, 12) for p in ("'xy'", "''", "'ß'")]  # fmt: skip
    found += [
        f"{a} {op} '{p}'"
        for a in ("s", "u")
        for op in ("like", "ilike", "not like")
        for p in (
            "abc",
            "a%",
            "%c%",
            "_b_",
            "A_C%",
            "%",
            "",
            "a\\\\_b%",
            "%\\\\%c%",
            "%ß",
            "日_語%",
        )
    ]
    found += [
        f"{a} rlike '{p}'"
        for a in ("s", "u")
        for p in (
            "^a",
            "b+",
            "[a-c]+$",
            "\\\\d+",
            "^$",
            "(a|x).*c",
            "\\\\s",
            ".",
            "\\\\bquick\\\\b",
            "[^a-z ]",
            "(?i)ABC",
            "a{2,}",
            "\\\\w+,",
            "^.+$",
            "line$",
            "[\\\\d,]",
            "\\\\.",
            "(?s)tab.*line",
        )
    ]
    return found + split(r"""
    substr(s, 2) | substring(s from 2 for 3) | substring(u from -2) | substring(i, 1, 2)
    substr(s, j)
    concat(s, u) | concat(s, i, d) | concat(s, null) | concat() | concat(bin, bin) | s || u || 'x'
    concat_ws(',', s, u) | concat_ws('-', s, null, n) | concat_ws(',', words)
    concat_ws(',', words, s, i)
    concat_ws(null, s) | concat_ws(',') | concat(arr, array(7)) | concat(words, arr) | i || 'x'
    1 + 2 || 'x'
    replace(s, 'a', 'Z') | replace(s, 'a') | replace(s, '', 'Z') | replace(u, 'X', '')
    translate(s, 'abc', '12')
    translate(u, 'e日', 'E本') | startswith(s, 'a') | endswith(s, 'c') | contains(u, 'o')
    contains(s, '')
    startswith(s, null) | startswith(bin, bin) | instr(s, 'b') | instr(u, '') | locate('b', s)
    locate('a', s, 2)
    locate('', s, 5) | locate('a', s, 0) | locate('a', s, null) | position('b' in s)
    position('b', s) | char(66)
    lpad(s, 5) | rpad(s, 5) | lpad(i, 5, '0') | repeat('ab', i % 3) | chr(i) | chr(65) | chr(256)
    chr(-1) | chr(223)
    split(u, ',') | split(u, '[,;] ') | split(u, 'X') | split(u, 'X', 2) | split(s, 'a', 0)
    split(u, ' ', -1)
    split(s, '\\.') | split_part(u, 'X', 1) | split_part(u, 'X', -1) | split_part(u, 'X', 9)
    split_part(u, '', 1)
    regexp_extract(u, '(\\w)=(\\d+)', 2) | regexp_extract(u, '(\\w+)') | regexp_extract(u, 'zz', 0)
    regexp_extract(s, '(a)|(b)', 2)
    regexp_replace(u, '\\d+', 'N') | regexp_replace(u, '(\\w)=(\\d)', '$2-$1')
    regexp_replace(u, 'o', '\\$')
    trim(both 'a' from s) | trim(leading 'a' from s) | trim(trailing 'c' from s) | trim(from u)
    trim('ab', s) | ltrim('a', s)
    btrim(u) | btrim(s, 'a') | trim('', s) | hex(i) | hex(l) | hex(bin) | hex(-1) | md5(bin)
    sha2(s, 256) | sha2(s, 0) | sha2(s, 224)
    sha2(s, 384) | sha2(s, 512) | sha2(s, 5) | crc32(bin) | length(bin) | length(i) | upper(i)
    reverse(arr) | reverse(i) | space(3)
    substring_index(u, 'X', 2) | substring_index(u, 'X', -2) | substring_index(u, 'X', 0)
    substring_index(s, '', 1) | sha('x') | len(s)
    s like n | s like '%' escape '/' | s like 'a/_b%' escape '/' | i like '1%' | s like null
    'a' 'b' | "dq" | 'it''s' | 'a\nb' | r'a\nb'
    s like any ('a%', 'x%') | s like all ('a%', '%c') | s not like all ('a%', '%c') | 'A'
    'é\t\101' | '\%' | initcap('o''neil mc-donald')
    """)


def time_functions() -> list[str]:
    one = ["year", "month", "day", "dayofmonth", "dayofweek", "dayofyear", "quarter", "weekofyear"]
    one += ["weekday", "last_day", "to_date"]
    found = [f"{name}({a})" for name in one for a in ("day", "t", "tn", "s")]
    found += [f"{name}({a})" for name in ("hour", "minute", "second", "to_timestamp") for a in
              ("day", "t", "tn", "s")]  # fmt: skip
    units = ["year", "YYYY", "quarter", "month", "mm", "week", "day", "hour", "minute", "second"]
    units += ["millisecond", "microsecond", "dd", "oops", "yy", "mon"]
    found += [f"date_trunc('{u}', {a})" for u in units for a in ("t2", "day2", "t")]
    found += [f"trunc({a}, '{u}')" for u in units for a in ("day", "t")]
    parts = ["year", "month", "day", "hour", "minute", "second", "week", "quarter", "dow", "doy"]
    found += [f"extract({u} from t)" for u in [*parts, "dayofweek_iso"]]
    found += [f"date_part('{u}', day)" for u in ("year", "month", "day", "dow")]
    spans = ["1 day", "-1 day", "2 hours", "3 months", "1 year 2 months", "1 week", "90 seconds"]
    spans += ["1 day 2 hours", "1.5 seconds", "15 milliseconds", "3 microseconds"]
    safe = ("if(year(t) between 2 and 9000, t, null)", "if(year(day) < 9000, day, null)")
    found += [f"{a} {op} interval {x}" for x in spans for a in safe for op in "+-"]
    return found + split("""
    unix_timestamp(t) | unix_timestamp(day) | unix_seconds(t) | unix_millis(t) | unix_micros(t)
    timestamp_seconds(j)
    timestamp_seconds(dec) | timestamp_seconds(1.5D) | timestamp_seconds(ty) | timestamp_millis(j)
    timestamp_micros(j)
    timestamp_millis(-1L) | timestamp_seconds(null) | datediff(day, day2)
    datediff(t, '2024-01-01') | datediff(s, day)
    date_add(day2, 5) | date_sub(day, 0) | date_add('2024-02-28', 2) | date_add(day2, ty)
    date_add(day2, '3')
    add_months(day2, 1) | add_months('2024-01-31', 1) | add_months('2024-02-29', -12)
    last_day('2023-02-01') | day2 + 3 | 3 + day2
    day2 - 1 + 1 | t - t2 > interval 1 day | t2 - t <= interval '10' hour
    day - day2 < interval 100 days | t - day > interval 0 second
    t2 + interval '1 day 2 hours' | interval 1 hour + t2
    t2 + (interval 1 hour + interval 5 minutes) | t2 - -interval 1 day
    tn - interval 1 second > tn | tn - t > interval 1 day | '2024-02-29' + interval 1 day
    date '2024-02-29' | timestamp '2024-02-29 1:2:3'
    date '2024-01-31' + interval 1 month | timestamp '2024-01-31 05:06:07' + interval 1 month
    timestamp_ntz '2024-02-29 00:00:00'
    timestamp '2024-02-29 12:00:00+02:00' | day2 + interval 1 day - interval 1 month
    to_timestamp(j) | to_timestamp(1.5) | to_date('2024-02-30') | concat('', -0.0)
    make_date(2024, 2, 29) | make_date(2023, 2, 29) | make_date(2000 + j % 5, ty, 1)
    date_from_unix_date(j) | unix_date(day)
    t between '2024-01-01' and '2024-12-31' | t2 > timestamp '2024-01-01' - interval 5 minutes
    hour('2024-02-29 07:08:09')
    """)


def collections() -> list[str]:
    return split("""
    size(arr) | size(m) | cardinality(arr) | array_size(arr) | array_contains(arr, 1)
    array_contains(arr, 1.0) | array_contains(words, 'a')
    array_contains(arr, 9L) | element_at(arr, 1) | element_at(arr, -1) | element_at(arr, 9)
    element_at(m, 'k') | get(arr, 0) | get(arr, -1)
    arr[0] | arr[1] | arr[j] | arr[-1] | words[0] | m['k'] | m['nope'] | m.k | st.a | st.b | ST.A
    `st`.`a` | st['a'] | array(1, 2, null)
    array(i, l) | array('a', 1) | array(1, 2.5) | array(i, j)[1] | struct(i, s) | struct(i, 1, s)
    struct(i as x, s as y) | struct(1, 2)
    named_struct('a', i, 'b', s) | named_struct('a', i).a | struct(st.a, i + 1) | (i, s)
    struct(I, st.B) | array(array(1), arr) | array(st)[0].b
    split(u, 'X')[1] | size(split(u, ',')) | array(1.5, i) | array(day, t) | arr[ty]
    array(null, 1) | to_date(2024) | to_date(ty)
    """)


def split(text: str) -> list[str]:
    """Expressions divided by ` | ` or the ends of lines."""
    return [
        part.strip() for line in text.splitlines() for part in line.split(" | ") if part.strip()
    ]


ACCEPTED = {
    "arithmetic": arithmetic,
    "comparisons": comparisons,
    "choices": choices,
    "casts": casts,
    "math": math_functions,
    "text": text_functions,
    "time": time_functions,
    "collections": collections,
}

REJECTED = split("""
    b + 1 | b + b | arr < 1 | arr + 1 | upper() | upper(s, s) | st + 1 | i and b | not i | not s
    b and 1 | b < 1 | m = m | i & d | i & n
    d div 2 | n div 2 | substring(s) | nosuch(i) | nosuchfield + 1 | st.nope | i.x | arr['a']
    i[0] | case when i then 1 end
    cast(i as date) | cast(b as date) | cast(arr as int) | cast(day as binary)
    try_cast(day as int) | try_cast(t as boolean) | try_cast(b as timestamp)
    try_cast(i as binary) | date_add(day, l) | date_add(day, 1.5) | day + l | day + day | t + 1
    t * 2
    greatest(i) | greatest(i, s) | if(i, 1, 2) | coalesce() | array_contains(arr, 'x')
    array_contains(i, 1) | size(i) | round(d, i)
    cast(d as nosuchtype) | a = not b | i is null = b | i in () | i + | (i | i) | 'abc  | i > > 3
    case when b then 1 | case end
    day = 5 | t > 5 | st = 1 | date '2024-13-01' | 300Y | ~d | shiftleft(d, s, 1) | i in (st, 1)
    unix_date(t) | unix_seconds(day) | timestamp_seconds(n) | timestamp_millis(d) | year(i)
    case when null then 1 end | hour(i) | md5(i) | datediff(i, day) | last_day(5)
    add_months(day, day) | s like 'a%' escape 'ab' | i between 1 | nullif(i)
    element_at(arr, 'x') | element_at(arr, l) | named_struct('a') | named_struct(s, 1) | day - s
    coalesce(b, 1) | case when b then b else i end
    array(b, 1) | b in (1, 0) | bin = 1 | bin + 1 | interval 1 month 1 day | interval 5 oops
    abs(b) | abs(day) | -day | -b | sqrt(b) | isnan(b)
    concat(arr, 1) | length(arr) | trim(arr) | bin like 'a' and 1 | 1.2.3 | i..j | @i | nvl(i)
    nvl2(i, 1) | if(b, 1)
""")


@pytest.mark.spark
@pytest.mark.parametrize("topic", ACCEPTED)
def test_same_type_and_value(judge: Any, topic: str) -> None:
    differences = judge.differences(ACCEPTED[topic]())
    assert not differences, f"{len(differences)}:\n" + "\n".join(differences[:400])


@pytest.mark.spark
def test_both_refuse(judge: Any, schema: Schema) -> None:
    wrong = [f"Spark accepts {text}" for text in REJECTED if judge.accepts(text)]
    for text in REJECTED:
        with contextlib.suppress(NetworkError):
            wrong.append(f"the reference accepts {text} as {analyze(text, schema).type}")
    assert not wrong, "\n".join(wrong)
