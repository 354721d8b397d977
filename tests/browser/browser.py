"""A headless Chromium, driven over its DevTools protocol: open a page, wait for words on it, click, take a picture."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
)

_PLACE = """words => {
    const says = e => (e.placeholder || e.innerText || '').trim() === words && e.getClientRects().length > 0;
    const kinds = "input, button, a, [role=menuitem], [role=option], span, div";
    const hits = [...document.querySelectorAll(kinds)].filter(says);
    const hit = hits[hits.length - 1];
    if (!hit) return null;
    hit.scrollIntoView({block: 'center'});
    const at = hit.getBoundingClientRect();
    return [at.x + at.width / 2, at.y + at.height / 2];
}"""


def installed() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One tab; `open` takes paths below `root`."""

    def __init__(self, socket: ClientConnection) -> None:
        self.root = ""
        self._socket = socket
        self._numbers = itertools.count(1)

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(timeout=60))
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def size(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, path: str) -> None:
        self.call("Page.navigate", url=self.root + path)

    def run(self, script: str) -> Any:
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def text(self) -> str:
        """What a person reads on it."""
        return str(self.run("document.body ? document.body.innerText : ''"))

    def wait_for(self, *words: str, seconds: float = 120) -> str:
        deadline = time.monotonic() + seconds
        while True:
            text = self.text()
            missing = [word for word in words if word not in text]
            if not missing:
                return text
            if time.monotonic() > deadline:
                raise AssertionError(f"{missing} not on the page after {seconds} s:\n{text}")
            time.sleep(0.2)

    def click(self, words: str) -> None:
        """The innermost visible thing whose text is `words`, or the field that asks for them."""
        at = self.run(f"({_PLACE})({json.dumps(words)})")
        if not at:
            raise AssertionError(f"nothing to click says {words!r}:\n{self.text()}")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", clickCount=1)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def browser(profile: Path, width: int = 1600, height: int = 1000) -> Generator[Page]:
    """A browser of its own, gone at the end; `profile` is a new folder."""
    path = installed()
    assert path is not None, "no Chromium on this machine"
    command = [path, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with connect(_tab(profile), max_size=None) as socket:
            page = Page(socket)
            page.call("Page.enable")
            page.size(width, height)
            yield page
    finally:
        process.terminate()
        process.wait(10)


def _tab(profile: Path) -> str:
    """The tab's socket; Chromium writes its port to a file of the profile."""
    port = profile / "DevToolsActivePort"
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if port.is_file() and (lines := port.read_text().splitlines()):
            tabs = httpx.get(f"http://127.0.0.1:{lines[0]}/json/list").json()
            found = [tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"]
            if found:
                return found[0]
        time.sleep(0.1)
    raise AssertionError("Chromium did not open a tab within 20 s")
