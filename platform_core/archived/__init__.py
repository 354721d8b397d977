"""How a frozen release is entered: by these programs alone, whatever the platform's other modules are called by then.

`protocol` says what each is given and what it answers; `rows` is the version of what decides rows.
"""
