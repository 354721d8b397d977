from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from platform_core.errors import SetupError
from platform_core.services import logs, ports


def test_a_taken_port_is_reported_with_the_process_that_holds_it() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        with pytest.raises(SetupError) as refused:
            ports.require_free("kafka", (port,), "WEIR_KAFKA__PORT")
    assert f"port {port} is taken by process {os.getpid()} (" in refused.value.what
    assert "set another port with WEIR_KAFKA__PORT" in refused.value.remedy


def test_free_ports_are_consecutive_and_free() -> None:
    first, *others = ports.free(4)
    assert others == [first + 1, first + 2, first + 3]
    assert not any(ports.taken(port) for port in (first, *others))


def test_free_ports_are_none_that_an_outgoing_connection_may_be_given_meanwhile() -> None:
    given = Path("/proc/sys/net/ipv4/ip_local_port_range")
    outgoing = int(given.read_text().split()[0]) if given.is_file() else 32_768
    assert all(port < outgoing for _ in range(50) for port in ports.free(4))


def test_a_port_taken_by_an_outgoing_connection_is_reported_with_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "DYING_SECONDS", 0.2)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        with socket.create_connection(server.getsockname()) as outgoing:
            port = outgoing.getsockname()[1]
            with pytest.raises(SetupError) as refused:
                ports.require_free("dagster-web", (port,), "WEIR_DAGSTER__PORT")
    assert f"port {port} is taken by process {os.getpid()} (" in refused.value.what


def test_a_long_log_is_cut_while_its_writer_goes_on(tmp_path: Path) -> None:
    long, short = tmp_path / "long.log", tmp_path / "short.log"
    short.write_text("s")
    with long.open("ab") as writer:
        writer.write(b"x" * 100)
        writer.flush()
        assert logs.bound(tmp_path, limit=50) == [long]
        writer.write(b"after")
    assert (long.read_bytes(), (tmp_path / "long.log.1").read_bytes()) == (b"after", b"x" * 100)
    assert short.read_text() == "s"
