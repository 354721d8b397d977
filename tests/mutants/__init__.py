"""Ten faults put into the platform on purpose, one at a time, each of which a test must notice.

    python -m tests.mutants             # all
    python -m tests.mutants fence epoch

Each is applied in a copy of the tree, in a folder that goes afterwards; the working tree is never touched. First the
tests that are to notice run in the copy as it is: they must pass. Then each mutant is

    killed    its tests fail
    SURVIVED  they pass: what the mutant breaks is proved by nobody any more
    BROKEN    they did not run, with it or without it: the table is wrong, or the test

The exit code is 0 when all are killed. The list is tests/mutants/table.py, one for each of the platform's promises:

    transaction_check    a batch that a table has is written again when it is repeated
    fence                two writers of one release both commit the same batch
    epoch                whoever lost a lease to the next owner still writes to the control store
    watermark_of_a_step  a planned batch runs with another watermark than the one planned
    late_rule            a record that is exactly as late as allowed is dropped
    reject_limit         a flood of rejects does not stop the job
    hand_over            what a topic lacks of a new live release is not written at the takeover
    alias_flip           of a cutover's tables the first alone moves
    compare              a changed value is noticed only where the count of rows changes
    oracle               the test kit does not see a doubled row
"""
