"""The HTML report: whole by itself, and harmless whatever a producer has sent."""

from __future__ import annotations

from datetime import UTC, datetime
from html.parser import HTMLParser

from platform_core.compare import ColumnFigures, Comparison, Count, Example, Verdict
from platform_core.compare.report import lines, page

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
HOSTILE = "<script>alert('x')</script> & \"quoted\""
FOUND = Comparison(
    left="stats@v1",
    right="stats@v2",
    left_version=7,
    right_version=3,
    offsets={"stocks": {0: 120}},
    key=("ticker",),
    rows_left=1200,
    rows_right=1201,
    counts={"only left": Count(), "only right": Count(1, 1), "changed": Count(2, 2, {"late on one side": 1})},
    columns=(ColumnFigures("avg_price", 2, 1, 0.5), ColumnFigures("trade_count", 0, 0)),
    examples=(
        Example("only right", {"ticker": HOSTILE}, None, {"ticker": HOSTILE, "avg_price": None}),
        Example(
            "changed",
            {"ticker": "A"},
            {"ticker": "A", "avg_price": "1"},
            {"ticker": "A", "avg_price": "2"},
            ("avg_price",),
        ),
    ),
)
VERDICT = Verdict(False, ("avg_price differs in 1 key, by 0.5 at most",), (f"a note about {HOSTILE}",))


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [f"{name}={value}" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def read() -> Seen:
    seen = Seen()
    seen.feed(page(FOUND, VERDICT, AT))
    return seen


def test_what_a_row_holds_is_shown_and_never_run() -> None:
    seen = read()
    assert "script" not in seen.tags
    assert seen.text.count(HOSTILE) == 2


def test_the_page_needs_nothing_else() -> None:
    assert read().links == []
    assert "url(" not in page(FOUND, VERDICT, AT)


def test_the_page_tells_verdict_place_figures_and_both_rows() -> None:
    text = read().text
    for part in ("Fail", "stats@v1", "stats@v2", "stocks[0]@120", "1,201", "late on one side", "no row", "null"):
        assert part in text


def test_columns_that_do_not_differ_are_left_out() -> None:
    assert "trade_count" not in read().text


def test_the_gist_for_a_terminal_has_verdict_and_reasons() -> None:
    told = list(lines(FOUND, VERDICT))
    assert told[2:4] == ["verdict: fail", "  - avg_price differs in 1 key, by 0.5 at most"]
