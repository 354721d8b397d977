"""A cutover: one or several tables move from their live releases to others, all at once, each at an exact position.

One row in the control store carries it through its phases. Whoever dies, the next one goes on from the row.

    1. requested   somebody            request.py: `cut_over` behind the gates of gates.py, `roll_back` without them
    2. held        OLD drivers         pause.py: each pauses after the batch in flight, and tells its position O;
                                       in place of a dead driver reconcile.py reads O from the table
    3. aligned     NEW drivers         takeover.py: each steps to O, its next batch waits at the gate, and tells
    4. flipped     supervisor          reconcile.py: all aliases and states in one transaction (`protocol.flip`)
    5. swapped     NEW drivers         takeover.py: the topic gets what differs at O (handover.py), batches go on

Until step 4 a deadline, or whoever asks, aborts it, and the OLD releases go on as if nothing had been; after step 4 it
only goes forward.

model.py has the values and the decisions about them, pure; store.py their rows; protocol.py what each of the five may
write and when; alias_log.py the moved aliases, once more in the warehouse.
"""
