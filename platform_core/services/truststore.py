"""The certificates that this machine trusts, for the bundled Java, which brings its own list and reads no other.

Behind a company's proxy that list does not hold the company's authority. A Java keystore of certificates is open: a
header, the entries, and a SHA-1 over a known salt; there is no keytool in the bundled runtime to write one.
"""

from __future__ import annotations

import hashlib
import ssl
import struct
from pathlib import Path

PASSWORD = "changeit"  # Java's own default: it guards nothing, the content is public


def trusted() -> list[bytes]:
    context = ssl.create_default_context()
    places = ssl.get_default_verify_paths()
    if not context.get_ca_certs() and places.capath:  # a folder is read by OpenSSL only when asked for one
        for path in Path(places.capath).glob("*.pem"):
            context.load_verify_locations(cafile=path)
    return context.get_ca_certs(binary_form=True)


def write(path: Path, certificates: list[bytes]) -> None:
    body = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    body += b"".join(_entry(number, certificate) for number, certificate in enumerate(certificates))
    seal = hashlib.sha1(PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body, usedforsecurity=False).digest()
    path.write_bytes(body + seal)


def _entry(number: int, certificate: bytes) -> bytes:
    head = struct.pack(">I", 2) + _text(f"system-{number}") + struct.pack(">Q", 0) + _text("X.509")
    return head + struct.pack(">I", len(certificate)) + certificate


def _text(words: str) -> bytes:
    return struct.pack(">H", len(words)) + words.encode()
