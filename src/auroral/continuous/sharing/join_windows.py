"""The windows of joined streams: rows, ranges of attributes, or neither."""

from __future__ import annotations

from collections.abc import Sequence

from auroral.continuous.boxing.plan import Flow
from auroral.errors import NetworkError, list_existing
from auroral.network.types import Field
from auroral.sql.queries.from_clause import FromSource
from auroral.sql.queries.text import Piece
from auroral.sql.queries.windows import WindowClause


def row_sizes(sources: Sequence[FromSource]) -> tuple[int, ...] | None:
    """The sizes of row windows, None if there are none."""
    windows = [source.window for source in sources]
    if not any(window is not None and window.rows is not None for window in windows):
        return None
    sizes = []
    for source, window in zip(sources, windows, strict=True):
        if window is None or window.rows is None:
            place = window.piece if window else source.piece
            raise place.error(
                f"a join takes row windows of all its streams or of none: {source.label} has no"
                " [ROWS n]",
                code="BAD_WINDOW",
            )
        refuse_slide(window)
        sizes.append(window.count(window.rows))
    return tuple(sizes)


def attributes_of(flow: Flow, window: WindowClause | None) -> Sequence[str]:
    """The attributes on which a window, or a band, can lie."""
    if window is None or window.wa is None:
        return flow.progress
    return (flow.attribute(window.wa),)


def range_of(source: FromSource, own: Sequence[str]) -> Piece:
    """The length of a window of RANGE, which lies on the one attribute of a stream's `own`."""
    window = source.window
    if window is None or window.range is None:
        raise source.piece.error(
            f"{source.label} needs a RANGE too: the other stream has one", code="BAD_WINDOW"
        )
    refuse_slide(window)
    if len(own) != 1:
        raise window.piece.error(
            f"the window needs the attribute that makes progress; {list_existing(own)}",
            code="BAD_WINDOW",
            hint="add WA and the attribute, as in [RANGE 1 min, WA ts]",
        )
    return window.range


def refuse_slide(window: WindowClause) -> None:
    """Refuse a window that does not slide with every tuple."""
    if window.slide is not None:
        raise window.slide.error(
            "the windows of a join slide with every tuple", code="BAD_WINDOW", hint="leave it out"
        )


def no_window(sources: Sequence[FromSource], attributes: Sequence[Sequence[str]]) -> NetworkError:
    """The error for streams that nothing keeps near each other."""
    names = [f"{s.label}.{a}" for s, own in zip(sources, attributes, strict=True) for a in own]
    return sources[1].piece.error(
        "a join of streams needs windows, or a predicate that keeps attributes that make"
        f" progress near each other; {list_existing(names)}",
        code="NO_WINDOW",
        hint="write S [RANGE 1 min, WA ts], T [RANGE 1 min, WA ts], or S.ts = T.ts",
    )


def require_alike(sources: Sequence[FromSource], fields: Sequence[Field]) -> None:
    """Refuse windows over attributes of which nobody can say how far apart they are."""
    if len({field.type.is_numeric for field in fields}) == 1:
        return
    told = ", ".join(
        f"{s.label}.{f.name} is {f.type}" for s, f in zip(sources, fields, strict=True)
    )
    window = sources[1].window
    place = window.piece if window is not None else sources[1].piece
    raise place.error(
        f"the windows of a join lie on attributes that can be compared: {told}", code="BAD_WINDOW"
    )
