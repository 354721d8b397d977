"""The mutants: what each changes where, and the cheapest tests that must fail then, all of them in `make test`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    source: str  # occurs in the file exactly once
    becomes: str
    tests: tuple[str, ...]


MUTANTS = (
    Mutant(
        "transaction_check",
        "platform_core/tables/delta.py",
        "        if self._seen() >= batch:\n            return self.table.version()\n",
        "",
        ("tests/tables/test_delta.py::test_a_batch_that_the_table_has_is_not_written_again",),
    ),
    Mutant(
        "fence",
        "platform_core/tables/delta.py",
        "app_transactions=[Transaction(self.app, batch)]",
        'app_transactions=[Transaction(f"{self.app}/{id(self)}", batch)]',
        ("tests/tables/test_delta.py::test_of_two_writers_of_one_release_the_second_to_commit_a_batch_is_refused",),
    ),
    Mutant(
        "epoch",
        "platform_core/control/leases.py",
        'if row is None or row["epoch"] != lease.epoch or row["released"]:',
        'if row is None or row["released"]:',
        ("tests/control/test_leases.py::test_a_superseded_driver_records_no_position_and_no_state",),
    ),
    Mutant(
        "watermark_of_a_step",
        "platform_core/streaming/checkpoint/planned_batches.py",
        'facts |= {"batchWatermarkMs": watermark_ms, ',
        "facts |= {",
        ("tests/streaming/checkpoint/test_planned_batches.py::test_a_step_ends_where_it_was_told_to_in_every_source",),
    ),
    Mutant(
        "late_rule",
        "platform_core/streaming/source/parsing.py",
        "return behind > int(part.late_after.total_seconds() * 1000)",
        "return behind >= int(part.late_after.total_seconds() * 1000)",
        (
            "tests/streaming/source/test_parsing.py::"
            "test_a_field_as_event_time_makes_records_late_and_early_by_their_own_timestamp",
        ),
    ),
    Mutant(
        "reject_limit",
        "platform_core/streaming/sink/rejects.py",
        "if bad >= _FEW and bad > self._share * seen:",
        "if bad >= _FEW and bad > seen:",
        ("tests/streaming/sink/test_rejects.py::test_over_the_limit_the_job_stops_and_says_where_what_and_what_to_do",),
    ),
    Mutant(
        "hand_over",
        "platform_core/cutover/handover.py",
        "        return difference(duck, job, publish, change.published, change.new, alike)\n",
        "        return []\n",
        (
            "tests/cutover/test_handover.py::"
            "test_a_keyed_topic_gets_what_differs_from_what_was_published_and_not_from_where_the_table_stood",
        ),
    ),
    Mutant(
        "alias_flip",
        "platform_core/cutover/protocol.py",
        "    for move in found.moves:\n        aliases.move(",
        "    for move in found.moves[:1]:\n        aliases.move(",
        ("tests/cutover/test_protocol.py::test_two_tables_move_together",),
    ),
    Mutant(
        "compare",
        "platform_core/compare/engine.py",
        '"where (nl, sl, xl) is distinct from (nr, sr, xr)"',
        '"where nl is distinct from nr"',
        ("tests/compare/test_compare.py::test_one_changed_value_in_one_row_of_many_is_found",),
    ),
    Mutant(
        "oracle",
        "platform_core/testing/matching.py",
        "                used.add(id(one))\n",
        "",
        ("tests/testing/test_matching.py::test_a_lost_row_a_doubled_one_and_a_changed_one_show",),
    ),
)
